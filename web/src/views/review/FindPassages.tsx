/** A search for passages that the answer did not consider. */
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { announce } from "../../state/announce";
import { passagesFor, SearchForm } from "../../parts/SearchForm";
import type { Passage } from "./items";
import { PassageList } from "./PassageList";
import { t } from "./text";
import styles from "./FindPassages.module.css";

const HITS = 10;

interface Props {
  shown: readonly Passage[];
  /** No further passage can be added. */
  full: boolean;
  onAdd: (id: string) => void;
}

export function FindPassages({ shown, full, onAdd }: Props) {
  const [hits, setHits] = useState<Passage[] | null>(null);
  async function find(words: string) {
    const results = await passagesFor(words, HITS);
    setHits(
      results.map((hit) => ({
        id: hit.chunk_id,
        label: pathText([...new Set([hit.title, ...hit.breadcrumb])]),
        text: hit.text,
        cited: false,
        hash: "",
      })),
    );
    announce(t("find.found", { n: results.length }));
  }
  const others = hits?.filter((hit) => !shown.some((passage) => passage.id === hit.id)) ?? [];
  return (
    <details class={styles.find}>
      <summary>{t("find.title")}</summary>
      <SearchForm label={t("find.words")} search={t("find.search")} onSearch={find} />
      {hits && others.length === 0 && <p>{t("find.none")}</p>}
      <PassageList passages={others} picked={[]} full={full} onToggle={onAdd} />
    </details>
  );
}
