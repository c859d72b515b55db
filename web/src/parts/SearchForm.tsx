/** Words to search for in the documents, and why a search failed, with the same search again. */
import { useState } from "preact/hooks";
import { api } from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { components } from "../api/schema";
import { Button } from "./Button";
import { Field } from "./Field";
import { Failure } from "./States";
import styles from "./SearchForm.module.css";

interface Props {
  /** Of the field. */
  label: string;
  /** Of the button. */
  search: string;
  onSearch: (words: string) => Promise<void>;
}

export function SearchForm({ label, search, onSearch }: Props) {
  const [words, setWords] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  async function find() {
    if (!words.trim()) return;
    try {
      await onSearch(words);
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
  }
  return (
    <>
      <form
        class={styles.form}
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          void find();
        }}
      >
        <Field type="search" label={label} value={words} autocomplete="off" onInput={setWords} />
        <Button type="submit" icon="search">
          {search}
        </Button>
      </form>
      {problem && <Failure problem={problem} onRetry={() => void find()} />}
    </>
  );
}

/** The best passages for the words, of some categories only if there are any. */
export async function passagesFor(
  query: string,
  count: number,
  categories: readonly (readonly string[])[] = [],
): Promise<components["schemas"]["SearchResponse"]["results"]> {
  const { results } = await api.post("/search", {
    body: {
      query,
      mode: "hybrid",
      top_k: count,
      min_score: 0,
      bm25_candidates: 100,
      vector_candidates: 100,
      highlights: false,
      explain: false,
      explain_documents: [],
      ...(categories.length > 0 && { filters: { taxonomy_paths: categories.map((path) => [...path]) } }),
    },
  });
  return results;
}
