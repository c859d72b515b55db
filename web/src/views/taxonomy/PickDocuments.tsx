/** A search for documents of the category, to send single ones to a part whatever their words. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { pathKey } from "../../parts/branches";
import { passagesFor, SearchForm } from "../../parts/SearchForm";
import type { Path } from "./operations";
import type { PartForm, Pick } from "./split";
import { t } from "./text";
import styles from "./SplitDialog.module.css";

interface Props {
  origins: readonly Path[];
  parts: readonly PartForm[];
  picks: readonly Pick[];
  /** null: its words decide. */
  onPick: (document: string, title: string, part: number | null) => void;
}

const PASSAGES = 50;
type Found = ReadonlyMap<string, string>;

export function PickDocuments({ origins, parts, picks, onPick }: Props) {
  const [found, setFound] = useState<Found | null>(null);

  async function find(words: string) {
    const titles = await titlesOf(words, origins);
    setFound(titles);
    announce(t("split.found", { n: titles.size }));
  }

  return (
    <details class={styles.pick}>
      <summary>{t("split.pick")}</summary>
      <SearchForm label={t("split.words")} search={t("split.find")} onSearch={find} />
      {found?.size === 0 && <p>{t("split.none")}</p>}
      <ul class={styles.found}>
        {[...(found ?? [])].map(([document, title]) => (
          <li key={document}>
            <span>{title}</span>
            <select
              aria-label={t("split.goesTo", { title })}
              value={String(picks.find((pick) => pick.document === document)?.part ?? "")}
              onChange={({ currentTarget: { value } }) => onPick(document, title, value ? Number(value) : null)}
            >
              <option value="">{t("split.byWords")}</option>
              {parts.map((part, index) => (
                <option key={part.id} value={String(part.id)}>
                  {part.name.trim() || t("split.part", { n: index + 1 })}
                </option>
              ))}
            </select>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Documents directly in these categories that have the words: id and title, best first. */
async function titlesOf(query: string, origins: readonly Path[]): Promise<Found> {
  const own = new Set(origins.map(pathKey));
  const hits = (await passagesFor(query, PASSAGES, origins)).filter((hit) => own.has(pathKey(hit.taxonomy_path)));
  return new Map(hits.map((hit) => [String(hit.metadata.document_id), hit.title]));
}
