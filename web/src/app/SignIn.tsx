/** Signing in: a key is pasted once. The page keeps no copy of it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { Button } from "../parts/Button";
import { Field } from "../parts/Field";
import { RetryButton } from "../parts/States";
import { t } from "../text/common";
import { NAME, NAME_LANGUAGE } from "../state/presentation";
import { isPublic, load, SIGN_IN_FAILED, signIn } from "../state/session";
import { Providers } from "./Providers";
import styles from "./SignIn.module.css";

export function SignIn({ ended }: { ended: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [wait, setWait] = useState(0);
  useEffect(() => input.current?.focus(), []);

  async function submit(event?: Event) {
    event?.preventDefault();
    const key = input.current?.value.trim() ?? "";
    setWait(0);
    if (!key) {
      setError(t("session.empty"));
      input.current?.focus();
      return;
    }
    setBusy(true);
    try {
      await signIn(key);
    } catch (failure) {
      const problem = asProblem(failure);
      setError(sentenceOf(problem));
      if (problem.kind === "busy") setWait(problem.retryAfter ?? 1);
      setBusy(false);
      input.current?.select();
      input.current?.focus();
    }
  }

  return (
    <div class={styles.page}>
      <form class={styles.form} onSubmit={(event) => void submit(event)}>
        <p class={styles.brand} translate={false} lang={NAME_LANGUAGE}>
          {NAME}
        </p>
        <h1>{t("session.title")}</h1>
        {ended && (
          <p class={styles.ended} role="alert">
            {t("session.ended")}
          </p>
        )}
        {SIGN_IN_FAILED && !ended && (
          <p class={styles.ended} role="alert">
            {t(REASONS[SIGN_IN_FAILED] ?? "session.refused")}
          </p>
        )}
        <Providers />
        <p class={styles.lead}>{t("session.lead")}</p>
        <Field
          label={t("session.key")}
          hint={t("session.keyHint")}
          error={error}
          type="password"
          autocomplete="current-password"
          inputRef={input}
        />
        {wait > 0 ? (
          <RetryButton seconds={wait} onRetry={() => void submit()} />
        ) : (
          <Button kind="main" type="submit" disabled={busy}>
            {busy ? t("session.signingIn") : t("session.signIn")}
          </Button>
        )}
        {isPublic.value && (
          <Button kind="bare" onClick={continueWithoutKey}>
            {t("session.withoutKey")}
          </Button>
        )}
      </form>
    </div>
  );
}

const REASONS: Record<string, "session.noAccess" | "session.unavailable" | "session.busy"> = {
  "no-access": "session.noAccess",
  unavailable: "session.unavailable",
  busy: "session.busy",
};

function continueWithoutKey(): void {
  location.hash = ""; // what is there may need a key
  void load();
}

function sentenceOf(problem: Problem): string {
  if (problem.kind === "unauthorized") return t("session.wrong");
  if (problem.kind === "unreachable") return t("state.unreachableHelp");
  return problem.detail;
}
