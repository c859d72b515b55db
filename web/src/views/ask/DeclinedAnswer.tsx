/** A question that the documents do not answer: what was searched, and where to go on. */
import { href } from "../../state/router";
import { Button } from "../../parts/Button";
import { languageOf } from "../../text/language";
import { address, ANYWHERE } from "./state";
import { t } from "./text";
import type { Answer, Turn } from "./turn";
import { newConversationId } from "./turns";
import styles from "./DeclinedAnswer.module.css";

type Declined = NonNullable<Answer["declined"]>;

export function DeclinedAnswer({ turn, answer }: { turn: Turn; answer: Answer }) {
  const { declined } = answer;
  const { scope, agent, as_of, regulation } = turn.settings;
  const limited = scope.length > 0 || [agent, as_of, regulation].some(Boolean);
  const everywhere = () => address.set({ q: turn.question, c: newConversationId(), source: "", ...ANYWHERE });
  return (
    <div class={styles.declined}>
      {declined && <Searched declined={declined} />}
      {declined && declined.nearest.length > 0 && (
        <>
          <p>{t("declined.nearest")}</p>
          <ul>
            {declined.nearest.map((heading) => (
              <li key={heading.chunk_id}>
                <a href={passageLink(heading)} lang={languageOf(heading.label)}>
                  {heading.label}
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
      {limited && <Button onClick={everywhere}>{t(as_of ? "declined.everywhereToday" : "declined.everywhere")}</Button>}
    </div>
  );
}

function Searched({ declined: { searched, unknown_words: words } }: { declined: Declined }) {
  return (
    <p>
      {t("declined.searched", { n: searched })}{" "}
      {words.length > 0
        ? t("declined.unknown", { words: words.map((word) => `“${word}”`).join(", ") })
        : t("declined.apart")}
    </p>
  );
}

/** The passage below the heading, in its document. */
const passageLink = ({ document_id, start, end }: Declined["nearest"][number]): string =>
  href("documents", { path: [document_id], query: { passage: `${start}-${end}` } });
