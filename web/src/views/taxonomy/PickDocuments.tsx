/** A search for documents of the category, to send single ones to a part whatever their words. */
import { useState } from "preact/hooks";
import { announce } from "../../app/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { pathKey } from "../../parts/branches";
import { Field } from "../../parts/Field";
import { Failure } from "../../parts/States";
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
  const [words, setWords] = useState("");
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  async function find() {
    if (!words.trim()) return;
    try {
      const titles = await titlesOf(words, origins);
      setProblem(null);
      setFound(titles);
      announce(t("split.found", { n: titles.size }));
    } catch (error) {
      setProblem(asProblem(error));
    }
  }

  return (
    <details class={styles.pick}>
      <summary>{t("split.pick")}</summary>
      <form
        class={styles.find}
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          void find();
        }}
      >
        <Field type="search" label={t("split.words")} value={words} autocomplete="off" onInput={setWords} />
        <Button type="submit" icon="search">
          {t("split.find")}
        </Button>
      </form>
      {problem && <Failure problem={problem} onRetry={() => void find()} />}
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
  const { results } = await api.post("/search", {
    body: {
      query,
      mode: "hybrid",
      top_k: PASSAGES,
      min_score: 0,
      bm25_candidates: 100,
      vector_candidates: 100,
      highlights: false,
      explain: false,
      explain_documents: [],
      filters: { taxonomy_paths: origins.map((path) => [...path]) },
    },
  });
  const own = new Set(origins.map(pathKey));
  const hits = results.filter((hit) => own.has(pathKey(hit.taxonomy_path)));
  return new Map(hits.map((hit) => [String(hit.metadata.document_id), hit.title]));
}
