/** The signed file of an answer: what it contains, what it leaves out, and how to verify it. */
import { address, send } from "../../api/client";
import { CopyButton } from "../../parts/CopyButton";
import { saveAs } from "../../state/save-as";
import { t } from "./text";
import styles from "./TracePage.module.css";

interface Saved {
  name: string;
  public_key: string;
  citations: unknown[];
  passages: unknown[];
  /** question, answer, audit, and `citation N` for those without their text. */
  left_out: string[];
}

/** Saves the file as it was sent: its signature covers the bytes. */
export async function saveBundle({ path, body }: { path: { trace_id: string }; body: object }): Promise<Saved> {
  const response = await send("post", address("/traces/{trace_id}/bundle", path), {
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  });
  const content = await response.text();
  const { payload } = JSON.parse(content) as { payload: Saved };
  const name = `answer-${path.trace_id.slice(0, 8)}.json`;
  saveAs(name, content, "application/json");
  return { ...payload, name };
}

const PARTS = ["question", "answer", "audit"] as const;

export function SavedBundle({ saved: { left_out, citations, passages, name, public_key } }: { saved: Saved }) {
  const without = left_out.filter((each) => each.startsWith("citation ")).length;
  const counts = { n: citations.length, texts: citations.length - without, passages: passages.length };
  const named = (isLeftOut: boolean) =>
    PARTS.filter((part) => left_out.includes(part) === isLeftOut).map((part) => t(`bundle.${part}`));
  const command = `dtrag verify ${name} --key ${public_key}`;
  return (
    <div class={styles.outcome}>
      <p>{t("bundle.saved", { name })}</p>
      <p>{t("bundle.contains", { parts: [...named(false), t("bundle.citations", counts)].join(", ") })}</p>
      {named(true).length > 0 && <p>{t("bundle.leftOut", { parts: named(true).join(", ") })}</p>}
      <p>{t("bundle.verify")}</p>
      <div class={styles.command}>
        <code>{command}</code>
        <CopyButton text={command} />
      </div>
    </div>
  );
}
