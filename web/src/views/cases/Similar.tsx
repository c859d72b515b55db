/** The cases that are most similar to a question, as Ask would find them. */
import { useEffect, useRef } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { useShortcuts } from "../../state/shortcuts";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { DataTable } from "../../parts/DataTable";
import { Meter } from "../../parts/Bars";
import { StatementText } from "../../parts/Statements";
import { Empty, Loaded } from "../../parts/States";
import { formatPercent } from "../../text/texts";
import { linkTo } from "./CaseList";
import { address } from "./state";
import { t } from "./text";
import styles from "./Similar.module.css";

const MOST = 20;
const LONGEST = 1000;

export function Similar() {
  const { q } = address.read();
  const box = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", label: () => t("similar.title"), run: () => box.current?.focus() }]);
  return (
    <section class={styles.similar} aria-labelledby="similar-title">
      <h2 id="similar-title">{t("similar.title")}</h2>
      <form
        key={q}
        class={styles.form}
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          const words = box.current?.value.trim() ?? "";
          if (words) address.set({ q: words });
          else box.current?.focus();
        }}
      >
        <label class="quiet" for="similar-question">
          {t("similar.question")}
        </label>
        <input
          id="similar-question"
          ref={box}
          type="search"
          defaultValue={q}
          maxLength={LONGEST}
          placeholder={t("similar.question")}
          autocomplete="off"
        />
        <Button type="submit" icon="search">
          {t("similar.search")}
        </Button>
      </form>
      {q && (
        <>
          <Suggestions />
          <p>
            <a href={address.link({ q: "" })}>{t("similar.all")}</a>
          </p>
        </>
      )}
    </section>
  );
}

function Suggestions() {
  const { q } = address.read();
  const similar = useResource(
    async (signal) => {
      const { suggestions, note_statements: notes } = await api.post("/cbr/suggest", {
        body: {
          query: q,
          k: MOST,
          similarity_method: "semantic",
          include_metadata: false,
          include_subcategories: false,
          min_quality_score: 0,
        },
        signal,
      });
      // The service fills up to k, also with cases that have nothing in common with the question.
      return { notes, suggestions: suggestions.filter(({ similarity_score }) => similarity_score > 0) };
    },
    [q],
  );
  useEffect(() => {
    if (similar.data) announce(t("similar.found", { n: similar.data.suggestions.length }));
  }, [similar.data]);
  return (
    <Loaded resource={similar}>
      {({ suggestions, notes }) => (
        <>
          {notes.length > 0 && (
            <p>
              <StatementText statements={notes} />
            </p>
          )}
          {suggestions.length === 0 ? (
            <Empty title={t("similar.none")} text={t("similar.noneHelp")} />
          ) : (
            <DataTable
              label={t("similar.title")}
              rows={suggestions}
              keyOf={(row) => row.case_id}
              columns={[
                {
                  title: t("case.question"),
                  render: (row) => <a href={linkTo(row.case_id)}>{row.query || row.case_id}</a>,
                },
                {
                  title: t("similar.similarity"),
                  render: (row) => (
                    <span class={styles.score}>
                      <Meter value={row.similarity_score} />
                      {formatPercent(row.similarity_score)}
                    </span>
                  ),
                },
                { title: t("case.votes"), number: true, render: (row) => row.usage_count },
              ]}
            />
          )}
        </>
      )}
    </Loaded>
  );
}
