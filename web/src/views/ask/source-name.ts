/** What a source is called in its answer, told apart from others with the same label. */
import { distinctLabels } from "../../parts/source-labels";
import { t } from "./text";
import type { Source, Turn } from "./turn";

export function sourceNames({ sources }: Turn): string[] {
  const labelled = sources.map((source) => ({ ...source, address: source.url }));
  return distinctLabels(labelled, (page) => t("source.page", { n: page }));
}

export const sourceName = (turn: Turn, source: Source): string =>
  sourceNames(turn)[turn.sources.indexOf(source)] ?? source.label;
