import { t, tables } from "./text";

/** What to do about a part that does not work; undefined for a part of a newer service. */
export const todo = (part: string): string | undefined =>
  Object.hasOwn(tables.en, `todo.${part}`) ? t(`todo.${part}` as keyof typeof tables.en) : undefined;
