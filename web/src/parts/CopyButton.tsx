import { useEffect, useState } from "preact/hooks";
import { announce } from "../app/announce";
import { t } from "../text/common";
import { Button } from "./Button";

const SHOWN_MS = 2000;

/** Copies a text and says so. `label` says what is copied. */
export function CopyButton({
  text,
  label,
  small = true,
}: {
  text: string | (() => string);
  label?: string;
  small?: boolean;
}) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [done]);
  async function copy() {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setDone(true);
      announce(t("copy.done"));
    } catch {
      announce(t("copy.failed"));
    }
  }
  return (
    <Button kind="bare" small={small} icon={done ? "check" : "copy"} onClick={() => void copy()}>
      {done ? t("copy.done") : (label ?? t("copy.copy"))}
    </Button>
  );
}
