import type { components } from "../../api/schema";

type Setting = components["schemas"]["SettingShape"];

/** The settings with all words of the search in their name or meaning. */
export function matching(settings: readonly Setting[], search: string, onlyChanged: boolean): Setting[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return settings.filter((row) => {
    const text = `${row.environment} ${row.name} ${row.description}`.toLowerCase();
    return (!onlyChanged || !row.is_default) && words.every((word) => text.includes(word));
  });
}
