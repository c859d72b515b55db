/** The address of the review queue: #/review/ITEM?from=100. */
import { integer, queryState } from "../../state/query";
import { navigate, route } from "../../state/router";

export const PAGE = 100;
export const address = queryState({ from: integer(0) });

export const openItem = (): string | undefined => route.value.path[0];
export const linkTo = (id: string | null): string => address.link({}, "review", id ? [id] : []);
export const go = (id: string | null, options?: { replace?: boolean }): void => navigate(linkTo(id), options);
