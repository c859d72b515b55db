/** A search for passages that the answer did not consider. */
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { announce } from "../../app/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Failure } from "../../parts/States";
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
  const [words, setWords] = useState("");
  const [hits, setHits] = useState<Passage[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  async function find() {
    if (!words.trim()) return;
    try {
      const { results } = await api.post("/search", {
        body: {
          query: words,
          mode: "hybrid",
          top_k: HITS,
          min_score: 0,
          bm25_candidates: 100,
          vector_candidates: 100,
          highlights: false,
          explain: false,
          explain_documents: [],
        },
      });
      setProblem(null);
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
    } catch (error) {
      setProblem(asProblem(error));
    }
  }
  const others = hits?.filter((hit) => !shown.some((passage) => passage.id === hit.id)) ?? [];
  return (
    <details class={styles.find}>
      <summary>{t("find.title")}</summary>
      <form
        class={styles.form}
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          void find();
        }}
      >
        <Field type="search" label={t("find.words")} value={words} autocomplete="off" onInput={setWords} />
        <Button type="submit" icon="search">
          {t("find.search")}
        </Button>
      </form>
      {problem && <Failure problem={problem} onRetry={() => void find()} />}
      {hits && others.length === 0 && <p>{t("find.none")}</p>}
      <PassageList passages={others} picked={[]} full={full} onToggle={onAdd} />
    </details>
  );
}
