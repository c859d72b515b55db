/** The kinds of files that the service reads. `tests/unit` compares them with the service's own table. */
export const FILE_KINDS = {
  "text/markdown": { name: "Markdown", suffixes: [".md", ".markdown"] },
  "text/plain": { name: "TXT", suffixes: [".txt", ".text"] },
  "text/html": { name: "HTML", suffixes: [".html", ".htm", ".xhtml"] },
  "application/pdf": { name: "PDF", suffixes: [".pdf"] },
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": { name: "DOCX", suffixes: [".docx"] },
  "application/vnd.openxmlformats-officedocument.presentationml.presentation": { name: "PPTX", suffixes: [".pptx"] },
  "application/vnd.oasis.opendocument.text": { name: "ODT", suffixes: [".odt"] },
  "application/hwp+zip": { name: "HWPX", suffixes: [".hwpx"] },
  "application/vnd.hancom.hwp": { name: "HWP", suffixes: [".hwp"] },
  "application/vnd.hancom.hml": { name: "HWPML", suffixes: [".hml"] },
  "message/rfc822": { name: "EML", suffixes: [".eml"] },
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": { name: "XLSX", suffixes: [".xlsx", ".xlsm"] },
  "application/vnd.ms-excel": { name: "XLS", suffixes: [".xls"] },
  "application/vnd.oasis.opendocument.spreadsheet": { name: "ODS", suffixes: [".ods"] },
  "text/csv": { name: "CSV", suffixes: [".csv", ".tsv"] },
  "application/json": { name: "JSON", suffixes: [".jsonl", ".ndjson", ".json"] },
  "application/xml": { name: "XML", suffixes: [".xml"] },
  "image/png": { name: "PNG", suffixes: [".png"] },
  "image/jpeg": { name: "JPEG", suffixes: [".jpg", ".jpeg"] },
  "image/tiff": { name: "TIFF", suffixes: [".tif", ".tiff"] },
} as const;

export type ContentType = keyof typeof FILE_KINDS;
export const CONTENT_TYPES = Object.keys(FILE_KINDS) as ContentType[];
/** Sent to the service although it does not read them: it answers with how to convert them. */
export const ADVISED_SUFFIXES = [".doc"] as const;

export function kindName(contentType: string): string {
  return contentType in FILE_KINDS ? FILE_KINDS[contentType as ContentType].name : contentType;
}

const KNOWN = new Set<string>([...CONTENT_TYPES.flatMap((type) => FILE_KINDS[type].suffixes), ...ADVISED_SUFFIXES]);

/** ".pdf" of "Report.PDF"; "" for a name without a suffix. */
export function suffixOf(name: string): string {
  return /[^/\\](\.[^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
}

export const isRead = (name: string): boolean => KNOWN.has(suffixOf(name));
