/** A line above the view while the service does not respond, and for a moment when it is back. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts/Button";
import { t } from "../text/common";
import { announce } from "./announce";
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
    announce(t("service.back"));
    const timer = setTimeout(() => setBack(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [recovered]);
  useEffect(() => {
    if (state !== "ok") announce(t(state === "offline" ? "service.offline" : "service.down"));
  }, [state]);
  if (state === "ok") return back ? <p class={`${styles.notice} ${styles.back}`}>{t("service.back")}</p> : null;
  return (
    <div class={styles.notice}>
      <p>{t(state === "offline" ? "service.offline" : "service.down")}</p>
      <Button small onClick={tryNow}>
        {t("service.tryNow")}
      </Button>
    </div>
  );
}
