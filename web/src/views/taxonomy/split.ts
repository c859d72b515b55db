/** The form of a split: the new categories below one, and which documents go where. */
import type { Operation, Part, Path } from "./operations";

export const MOST_PARTS = 100;
const MOST_KEYWORDS = 100;
const LONGEST_KEYWORD = 100;

/** One new category as it is typed. */
export interface PartForm {
  id: number;
  name: string;
  /** Separated by commas. */
  keywords: string;
}

/** A document that goes to a part whatever its words. */
export interface Pick {
  document: string;
  title: string;
  part: number;
}

export const keywordsOf = (text: string): string[] => [
  ...new Set(
    text
      .split(/[,，、;\n]/)
      .map((word) => word.trim())
      .filter(Boolean),
  ),
];

export const tooManyKeywords = (text: string): boolean => {
  const words = keywordsOf(text);
  return words.length > MOST_KEYWORDS || words.some((word) => [...word].length > LONGEST_KEYWORD);
};

/** Parts without name, keywords and documents are left out: an empty row of the form. */
export function splitFrom(path: Path, parts: readonly PartForm[], picks: readonly Pick[]): Operation & { op: "split" } {
  const into = parts.flatMap(({ id, name, keywords }) => {
    const part: Part = { name: name.trim() };
    const words = keywordsOf(keywords);
    const documents = picks.filter((pick) => pick.part === id).map((pick) => pick.document);
    if (words.length) part.keywords = words;
    if (documents.length) part.documents = documents;
    return part.name || words.length || documents.length ? [part] : [];
  });
  return { op: "split", path, into };
}
