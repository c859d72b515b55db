import type { Language } from "./tags";

export type Values = Record<string, string | number>;

const PLACEHOLDER = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g;

/** `{name}` stands for a value; `{n|document|documents}` for the first form when `n` is 1, else for the second. */
export function filled(text: string, values: Values, tag: Language): string {
  return text.replace(PLACEHOLDER, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined) return (value === 1 ? one : many) ?? "";
    return typeof value === "number" ? new Intl.NumberFormat(tag).format(value) : value;
  });
}
