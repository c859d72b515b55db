/** A line above the view while the service does not respond, and for a moment when it is back. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts/Button";
import { t } from "../text/common";
import { connection, recoveries, tryNow } from "./connection";
import styles from "./ConnectionNotice.module.css";

const SHOWN_MS = 4000;

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
