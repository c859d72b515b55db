/** Fields that the service reads from files, in words; those of the files' own names stay as they are. */
import { formatDate, formatNumber } from "../../text/texts";
import { t, tables, type DocumentsKey } from "./text";

const isKey = (key: string): key is DocumentsKey => key in tables.en;

export function metadataName(name: string): string {
  const key = `metadata.${name}`;
  return isKey(key) ? t(key) : name;
}

export function metadataValue(name: string, value: unknown): string {
  if (typeof value === "number") return formatNumber(value);
  if (typeof value !== "string") return JSON.stringify(value);
  if (/^\d{4}-\d{2}-\d{2}$/.test(value)) return formatDate(value);
  return name === "kind" && value === "regulation" ? t("metadata.kind.regulation") : value;
}
