/** The kinds of files that the service reads. `tests/unit` compares them with the service's own table. */
export const FILE_KINDS = {
  "text/markdown": { name: "Markdown", suffixes: [".md", ".markdown"] },
  "text/plain": { name: "TXT", suffixes: [".txt", ".text"] },
  "text/html": { name: "HTML", suffixes: [".html", ".htm", ".xhtml"] },
  "application/pdf": { name: "PDF", suffixes: [".pdf"] },
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": { name: "DOCX", suffixes: [".docx"] },
  "application/hwp+zip": { name: "HWPX", suffixes: [".hwpx"] },
  "text/csv": { name: "CSV", suffixes: [".csv", ".tsv"] },
  "application/json": { name: "JSON Lines", suffixes: [".jsonl", ".ndjson"] },
} as const;

export type ContentType = keyof typeof FILE_KINDS;
export const CONTENT_TYPES = Object.keys(FILE_KINDS) as ContentType[];
/** Sent to the service although it does not read them: it answers with how to convert them. */
export const ADVISED_SUFFIXES = [".hwp", ".doc"] as const;

export function kindName(contentType: string): string {
  return contentType in FILE_KINDS ? FILE_KINDS[contentType as ContentType].name : contentType;
}

const KNOWN = new Set<string>([...CONTENT_TYPES.flatMap((type) => FILE_KINDS[type].suffixes), ...ADVISED_SUFFIXES]);

/** ".pdf" of "Report.PDF"; "" for a name without a suffix. */
export function suffixOf(name: string): string {
  return /[^/\\](\.[^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
}

export const isRead = (name: string): boolean => KNOWN.has(suffixOf(name));
