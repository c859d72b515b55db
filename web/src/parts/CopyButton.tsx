import { useEffect, useState } from "preact/hooks";
import { announce } from "../state/announce";
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
      await write(typeof text === "string" ? text : text());
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

/** Without https the browser has no clipboard for scripts; the old way works there. */
async function write(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!done) throw new Error("not allowed");
}
