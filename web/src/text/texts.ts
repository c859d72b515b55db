import { filled, type Values } from "./fill";
import { language, type Language } from "./language";

export type { Values } from "./fill";
type Table<K extends string> = Record<K, string>;
export type Translate<K extends string> = (key: K, values?: Values) => string;

/** The function that gives the texts of two tables in the language of the page, with their values filled in. */
export function texts<K extends string>(en: Table<K>, ko: Table<K>): Translate<K> {
  const tables: Record<Language, Table<K>> = { en, ko };
  return (key, values) => filled(tables[language.value][key], values ?? {}, language.value);
}

export function formatNumber(value: number, tag: Language = language.value): string {
  return new Intl.NumberFormat(tag).format(value);
}

export function formatPercent(value: number): string {
  return new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 0 }).format(value);
}

/** A day (2024-03-01) is the same everywhere; a time is shown in the zone of the browser. */
export function formatDate(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const timeZone = /^\d{4}-\d{2}-\d{2}$/.test(iso) ? "UTC" : undefined;
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeZone }).format(date);
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
