/** The proof that no line of the log was changed; with an earlier head, also that none is missing at the end. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { Field } from "../../parts/Field";
import { Failure } from "../../parts/States";
import { formatNumber } from "../../text/texts";
import { address, NO_FILTERS } from "./state";
import { t } from "./text";
import styles from "./AuditView.module.css";

type Verdict = components["schemas"]["VerdictShape"];

export function Verify() {
  const [expect, setExpect] = useState("");
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const verify = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    setVerdict(null);
    try {
      const result = await api.get("/audit/verify", { query: { expect: expect.trim() || undefined } });
      setVerdict(result);
      if (result.ok) announce(t("audit.intact", { n: result.lines }));
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <section class={styles.verify} aria-label={t("audit.verify")}>
      <Button icon="check" aria-disabled={busy} onClick={() => void verify()}>
        {t(busy ? "audit.verifying" : "audit.verify")}
      </Button>
      <details>
        <summary>{t("audit.withHead")}</summary>
        <Field
          label={t("audit.expect")}
          hint={t("audit.expectHint")}
          value={expect}
          maxLength={100}
          autocomplete="off"
          onInput={setExpect}
        />
      </details>
      {verdict?.ok && <Intact verdict={verdict} />}
      {verdict && !verdict.ok && <Damaged verdict={verdict} />}
      {problem && <Failure problem={problem} onRetry={() => void verify()} />}
    </section>
  );
}

function Intact({ verdict }: { verdict: Verdict }) {
  return (
    <div class={styles.verdict}>
      <Badge tone="good">{t("audit.intact", { n: verdict.lines })}</Badge>
      <p class={styles.hint}>
        {t("audit.head")} <code>{verdict.head}</code> <CopyButton text={verdict.head} label={t("audit.copyHead")} />
      </p>
    </div>
  );
}

function Damaged({ verdict }: { verdict: Verdict }) {
  const line = verdict.first_bad ?? verdict.lines + 1;
  return (
    <div class={styles.damaged} role="alert">
      <p>
        <strong>{t("audit.damaged", { n: formatNumber(line) })}</strong> <span lang="en">{verdict.reason}</span>
      </p>
      <p>{t("audit.damagedHelp", { n: verdict.lines })}</p>
      <p>
        <a href={address.link({ ...NO_FILTERS, before: line + 1 })}>{t("audit.showDamage")}</a>
      </p>
    </div>
  );
}
