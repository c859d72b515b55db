/** An answer with a low confidence: a person confirms it, or picks the passages that answer the question. */
import { useRef, useState } from "preact/hooks";
import { useShortcuts } from "../../app/shortcuts";
import { href } from "../../app/router";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { Markdown } from "../../parts/Markdown";
import { languageOf } from "../../text/language";
import { Decisions } from "./Decisions";
import { FindPassages } from "./FindPassages";
import { answerOf, type Passage } from "./items";
import { Reasons, type Deciding } from "./ItemPanel";
import { PassageList } from "./PassageList";
import { t } from "./text";
import styles from "./AnswerItem.module.css";

/** Passages of one correction. */
const MOST = 20;

export function AnswerItem({ item, onDecided, onStale }: Deciding) {
  const answer = answerOf(item);
  const waiting = item.status === "waiting";
  const cited = answer.passages.filter((passage) => passage.cited).map((passage) => passage.id);
  const [ticked, setPicked] = useState<readonly string[]>(waiting ? cited : answer.chosen);
  const [added, setAdded] = useState<readonly Passage[]>([]);
  const list = useRef<HTMLElement>(null);
  const passages = [...answer.passages, ...added.filter((one) => !answer.passages.some(({ id }) => id === one.id))];
  // A passage may disappear while the item is open: what cannot be seen cannot be unticked.
  const picked = ticked.filter((id) => passages.some((passage) => passage.id === id));
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
        {picked.length < ticked.length && (
          <p class={styles.note} role="status">
            {t("answer.gone", { n: ticked.length - picked.length })}
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
              full={picked.length >= MOST}
              onToggle={waiting ? toggle : undefined}
            />
          </>
        )}
        {waiting && (
          <FindPassages
            shown={passages}
            onAdd={(passage) => {
              setAdded([...added, passage]);
              if (picked.length < MOST) setPicked([...picked, passage.id]);
            }}
          />
        )}
      </section>
      {waiting && (
        <Decisions
          item={item}
          onDecided={onDecided}
          onStale={onStale}
          correct={(note, decide) => (
            <Button
              kind={same ? "plain" : "main"}
              disabled={same || picked.length === 0}
              onClick={() =>
                decide("corrected", () =>
                  api.post("/review/{item_id}/correct", {
                    path: { item_id: item.item_id },
                    body: { note, passages: [...picked] },
                  }),
                )
              }
            >
              {t("answer.correct", { n: picked.length })}
            </Button>
          )}
        />
      )}
    </>
  );
}
