/** A question that the documents do not answer: what was searched, and where to go on. */
import { href } from "../../app/router";
import { viewOf } from "../../app/views";
import { Button } from "../../parts/Button";
import { declinedFrom } from "./declined";
import { address } from "./state";
import { t } from "./text";
import { newConversationId, type Answer, type Turn } from "./turns";
import styles from "./DeclinedAnswer.module.css";

export function DeclinedAnswer({ turn, answer }: { turn: Turn; answer: Answer }) {
  const { searched, unknown, nearest } = declinedFrom(answer.metadata.reason);
  const limited = turn.settings.scope.length > 0 || turn.settings.agent !== "" || turn.settings.as_of !== "";
  const everywhere = () =>
    address.set({ q: turn.question, c: newConversationId(), scope: [], agent: "", as_of: "", source: "" });
  return (
    <div class={styles.declined}>
      {searched && (
        <p>
          {t("declined.searched", { n: searched })}{" "}
          {unknown.length > 0
            ? t("declined.unknown", { words: unknown.map((word) => `“${word}”`).join(", ") })
            : t("declined.apart")}
        </p>
      )}
      {nearest.length > 0 && (
        <>
          <p>{t("declined.nearest")}</p>
          <ul>
            {nearest.map((heading) => (
              <li key={heading}>
                <a href={linkFor(heading)}>{heading}</a>
              </li>
            ))}
          </ul>
        </>
      )}
      {limited && <Button onClick={everywhere}>{t("declined.everywhere")}</Button>}
    </div>
  );
}

/** The passages below a heading; without a view that shows them, what the documents say about it. */
function linkFor(heading: string): string {
  if (viewOf("search")) return href("search", { query: { q: heading } });
  return address.link({ q: heading, c: "", source: "" }, "ask", []);
}
