/** A line above the view: the service does not respond, or is back again, or signing out has failed. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts/Button";
import { t } from "../text/common";
import { connection, recoveries, tryNow } from "../state/connection";
import { signOut, signOutProblem } from "../state/session";
import styles from "./ConnectionNotice.module.css";

const SHOWN_MS = 4000;

/** The caller is still signed in after all; who leaves a shared machine must know. */
export function SignOutNotice() {
  const problem = signOutProblem.value;
  return (
    <div role="alert">
      {problem && (
        <section class={styles.notice} aria-label={t("session.signOut")}>
          <p>{`${t("session.stillIn")} ${problem.detail || t("state.unreachableHelp")}`}</p>
          <Button small icon="retry" onClick={() => void signOut()}>
            {t("session.signOut")}
          </Button>
        </section>
      )}
    </div>
  );
}

export function ConnectionNotice() {
  const [back, setBack] = useState(false);
  const recovered = recoveries.value;
  const state = connection.value;
  useEffect(() => {
    if (recovered === 0) return;
    setBack(true);
    const timer = setTimeout(() => setBack(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [recovered]);
  // Always in the page, so that screen readers notice when its text changes.
  return (
    <div role="status">
      {state !== "ok" && (
        <section class={styles.notice} aria-label={t("service.label")}>
          <p>{t(state === "offline" ? "service.offline" : "service.down")}</p>
          <Button small onClick={tryNow}>
            {t("service.tryNow")}
          </Button>
        </section>
      )}
      {state === "ok" && back && (
        <section class={`${styles.notice} ${styles.back}`} aria-label={t("service.label")}>
          <p>{t("service.back")}</p>
        </section>
      )}
    </div>
  );
}
