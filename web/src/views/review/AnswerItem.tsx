/** An answer with a low confidence: a person confirms it, or picks the passages that answer the question. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../../state/shortcuts";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { Markdown } from "../../parts/Markdown";
import { languageOf } from "../../text/language";
import { Decisions, Reasons } from "./Decisions";
import { FindPassages } from "./FindPassages";
import { answerOf, changedSince, hashesOf, type Answering, type Passage } from "./items";
import { PassageList } from "./PassageList";
import { t } from "./text";
import styles from "./AnswerItem.module.css";

/** Passages of one correction. */
const MOST = 20;

export function AnswerItem({ item, added, loading, onAdd, onDecided, onStale }: Answering) {
  const answer = answerOf(item);
  const waiting = item.status === "waiting";
  const cited = answer.passages.filter((passage) => passage.cited).map((passage) => passage.id);
  const [ticked, setPicked] = useState<readonly string[]>(waiting ? cited : answer.chosen);
  const list = useRef<HTMLElement>(null);
  const passages = answer.passages;
  const changed = useChanged(passages);
  // What has to be read again is brought into view.
  useEffect(() => {
    if (changed.length > 0) list.current?.querySelector("[data-changed]")?.scrollIntoView({ block: "center" });
  }, [changed.join(" ")]);
  // A passage may disappear while the item is open: what cannot be seen cannot be unticked.
  const picked = ticked.filter((id) => passages.some((passage) => passage.id === id));
  const gone = loading ? 0 : ticked.length - picked.length;
  const toggle = (id: string) =>
    setPicked(picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id]);
  const pick = () => list.current?.querySelector<HTMLInputElement>("input")?.focus();
  useShortcuts(waiting ? [{ keys: "c", label: () => t("answer.pick"), run: pick }] : []);
  const same = picked.length === cited.length && picked.every((id) => cited.includes(id));
  return (
    <>
      <section class={styles.section}>
        <h3>{t("answer.answer")}</h3>
        <div class={styles.answer}>
          {answer.text ? <Markdown text={answer.text} /> : <p class={styles.note}>{t("answer.noText")}</p>}
        </div>
        <p class={styles.note}>
          {answer.decision === "abstain" && t("answer.declined")}{" "}
          {answer.asOf && t("answer.asOf", { day: answer.asOf })}{" "}
          <a href={href("ask", { query: { q: answer.question } })}>{t("answer.ask")}</a>
        </p>
      </section>
      <Reasons reasons={answer.reasons} />
      {answer.feedback.length > 0 && (
        <section class={styles.section}>
          <h3>{t("answer.feedback")}</h3>
          {answer.feedback.map((words) => (
            <blockquote key={words} class={styles.answer} lang={languageOf(words)}>
              {words}
            </blockquote>
          ))}
        </section>
      )}
      <section class={styles.section} ref={list} aria-labelledby="passages-title">
        <h3 id="passages-title">{t("answer.passages")}</h3>
        {gone > 0 && (
          <p class={styles.note} role="status">
            {t("answer.gone", { n: gone })}
          </p>
        )}
        {passages.length === 0 ? (
          <p class={styles.note}>{t("answer.noPassages")}</p>
        ) : (
          <>
            {waiting && <p class={styles.note}>{t("answer.passagesHelp")}</p>}
            <PassageList
              passages={passages}
              picked={picked}
              changed={changed}
              full={picked.length >= MOST}
              onToggle={waiting ? toggle : undefined}
            />
          </>
        )}
        {waiting && (
          <FindPassages
            shown={passages}
            full={added.length >= MOST}
            onAdd={(id) => {
              onAdd(id);
              if (picked.length < MOST) setPicked([...picked, id]);
            }}
          />
        )}
      </section>
      {waiting && (
        <Decisions
          item={item}
          hashes={hashesOf(passages, cited)}
          onDecided={onDecided}
          onStale={onStale}
          correct={(note, decide) => (
            <Correct
              n={picked.length}
              disabled={same || picked.length === 0}
              onCorrect={() =>
                decide("corrected", () =>
                  api.post("/review/{item_id}/correct", {
                    path: { item_id: item.item_id },
                    body: { note, passages: [...picked], content_hashes: hashesOf(passages, picked) },
                  }),
                )
              }
            />
          )}
        />
      )}
    </>
  );
}

function Correct({ n, disabled, onCorrect }: { n: number; disabled: boolean; onCorrect: () => void }) {
  useShortcuts([{ keys: "x", label: () => t("answer.correctKey"), run: () => !disabled && onCorrect() }]);
  return (
    <Button kind={disabled ? "plain" : "main"} disabled={disabled} onClick={onCorrect}>
      {t("answer.correct", { n })}
    </Button>
  );
}

/** The ids of passages whose text is not the one that this page showed first. */
function useChanged(passages: readonly Passage[]): readonly string[] {
  const first = useRef(new Map<string, string>());
  return changedSince(first.current, passages);
}
