/** Labels of the sources of one answer: equal ones get what tells them apart. */
import { cellsOf } from "./table-rows";

export interface Labelled {
  label: string;
  document_id: string;
  display: string;
  /** Where the document is. */
  address: string;
  page?: number | null;
}

const EXCERPT = 40;

/**
 * The label of each source, in their order. Equal labels get the file's name where the documents differ, the page where
 * the pages differ, and otherwise the first words of the quotation.
 */
export function distinctLabels(sources: readonly Labelled[], pageName: (page: number) => string): string[] {
  return sources.map((source) => {
    const equal = sources.filter((other) => other.label === source.label);
    const differ = (value: (one: Labelled) => unknown) => new Set(equal.map(value)).size > 1;
    const parts = [
      differ((one) => one.document_id) && fileOf(source.address),
      differ((one) => one.page) && source.page && !source.label.endsWith(`p. ${source.page}`) && pageName(source.page),
    ].filter(Boolean);
    if (equal.length > 1 && differ((one) => one.display)) {
      const same = equal.filter((one) => one.document_id === source.document_id && one.page === source.page);
      if (same.length > 1 || parts.length === 0) parts.push(`“${excerptOf(source.display)}”`);
    }
    return [source.label, ...parts].join(" · ");
  });
}

function fileOf(address: string): string {
  const name = address.split(/[?#]/)[0]?.split("/").filter(Boolean).at(-1) ?? "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The first cell of a row, or the first words of a sentence. */
function excerptOf(text: string): string {
  const first = cellsOf(text.split("\n")[0] ?? "").find(Boolean) ?? "";
  const points = [...first];
  return points.length > EXCERPT ? `${points.slice(0, EXCERPT).join("").trimEnd()}…` : first;
}
