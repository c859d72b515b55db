import { language, type Language } from "./language";

export type Values = Record<string, string | number>;
type Table<K extends string> = Record<K, string>;
export type Translate<K extends string> = (key: K, values?: Values) => string;

const PLACEHOLDER = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g;

/**
 * The function that gives the texts of two tables in the language of the page.
 *
 * `{name}` stands for a value; `{n|document|documents}` for the first form when `n` is 1, else for the second.
 */
export function texts<K extends string>(en: Table<K>, ko: Table<K>): Translate<K> {
  const tables: Record<Language, Table<K>> = { en, ko };
  return (key, values) => filled(tables[language.value][key], values ?? {}, language.value);
}

function filled(text: string, values: Values, tag: Language): string {
  return text.replace(PLACEHOLDER, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined) return (value === 1 ? one : many) ?? "";
    return typeof value === "number" ? formatNumber(value, tag) : value;
  });
}

export function formatNumber(value: number, tag: Language = language.value): string {
  return new Intl.NumberFormat(tag).format(value);
}

export function formatPercent(value: number): string {
  return new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 0 }).format(value);
}

export function formatDate(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium" }).format(date);
}

export function formatDateTime(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "short" }).format(date);
}

export function formatSeconds(seconds: number): string {
  const number = (digits: number) =>
    new Intl.NumberFormat(language.value, { maximumFractionDigits: digits, minimumFractionDigits: digits });
  if (seconds < 1) return `${number(0).format(seconds * 1000)} ms`;
  return language.value === "ko" ? `${number(1).format(seconds)}초` : `${number(1).format(seconds)} s`;
}
