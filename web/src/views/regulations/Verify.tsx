/** Whether what a pasted text cites exists, and whether its quotations are in the cited provisions. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { pointsIn } from "../../parts/code-points";
import { Field } from "../../parts/Field";
import { Empty, Loaded } from "../../parts/States";
import { formatNumber } from "../../text/texts";
import { AsOf } from "./AsOf";
import { checked, draft, isWrong } from "./checked-text";
import { Findings, summary } from "./Findings";
import { address, asOfQuery } from "./state";
import { t } from "./text";
import styles from "./Verify.module.css";

/** Characters that the service checks at once. */
const LONGEST = 150_000;

export function Verify() {
  const { asOf, regulation } = address.read();
  const text = checked.value;
  const box = useRef<HTMLTextAreaElement>(null);
  const verified = useResource(
    text
      ? async (signal) => {
          const body = { text, ...(regulation && { regulation }), ...asOfQuery(asOf) };
          return { text, ...(await api.post("/regulations/verify", { body, signal })) };
        }
      : null,
    [text, regulation, asOf],
  );
  const unknown = verified.problem?.kind === "missing" ? verified.problem.detail : undefined;
  const heading = useRef<HTMLHeadingElement>(null);
  const submitted = useRef(false);
  useEffect(() => {
    if (!verified.data) return;
    if (submitted.current) showResults(heading.current);
    submitted.current = false;
    const { citations, quotations } = verified.data;
    announce(summary([...citations, ...quotations].filter(isWrong).length, citations.length));
  }, [verified.data]);
  return (
    <section class={styles.verify} aria-label={t("show.verify")}>
      <Form box={box} unknown={unknown} again={verified.reload} onSubmit={() => (submitted.current = true)} />
      {text && !unknown && (
        <Loaded resource={verified} lines={6}>
          {(data) =>
            data.citations.length === 0 ? (
              <Empty title={t("verify.none")} text={t("verify.noneHelp")}>
                <Button onClick={() => box.current?.focus()}>{t("verify.edit")}</Button>
              </Empty>
            ) : (
              <Findings verified={data} heading={heading} />
            )
          }
        </Loaded>
      )}
    </section>
  );
}

/** The results begin below a form that fills the window: move there, also with the focus. */
function showResults(heading: HTMLElement | null): void {
  heading?.scrollIntoView({ block: "start" });
  heading?.focus({ preventScroll: true });
}

interface FormProps {
  box: { current: HTMLTextAreaElement | null };
  /** Why the regulation of the address cannot be used. */
  unknown: string | undefined;
  again: () => void;
  onSubmit: () => void;
}

function Form({ box, unknown, again, onSubmit }: FormProps) {
  const state = address.read();
  const [regulation, setRegulation] = useState(state.regulation);
  const id = useId();
  const length = pointsIn(draft.value);
  const tooLong = length > LONGEST;

  function check(event: Event) {
    event.preventDefault();
    if (!draft.value.trim() || tooLong) {
      box.current?.focus();
      return;
    }
    onSubmit();
    const name = regulation.trim();
    if (draft.value === checked.value && name === state.regulation) again();
    checked.value = draft.value;
    address.set({ regulation: name, findings: "all" }, { replace: true });
  }

  return (
    <form class={styles.form} onSubmit={check}>
      <div class={styles.box}>
        <label for={id}>{t("verify.text")}</label>
        <textarea
          id={id}
          ref={box}
          rows={8}
          spellcheck={false}
          value={draft.value}
          aria-invalid={tooLong ? "true" : undefined}
          aria-describedby={tooLong ? `${id}-hint ${id}-error` : `${id}-hint`}
          onInput={(event) => (draft.value = event.currentTarget.value)}
        />
        <p id={`${id}-hint`} class={styles.hint}>
          {t("verify.hint", { n: formatNumber(LONGEST) })}
        </p>
        {tooLong && (
          <p id={`${id}-error`} class={styles.error} role="alert">
            {t("verify.tooLong", { n: formatNumber(length) })}
          </p>
        )}
      </div>
      <div class={styles.options}>
        <Field
          label={t("verify.regulation")}
          hint={t("verify.regulationHint")}
          error={unknown}
          value={regulation}
          onInput={setRegulation}
        />
        <AsOf />
        <Button type="submit" kind="main">
          {t("verify.check")}
        </Button>
      </div>
    </form>
  );
}
