/** Questions of the case memory: the same one, and similar ones that can be asked again. */
import { Icon } from "../../parts/Icon";
import { languageOf } from "../../text/language";
import { formatDate } from "../../text/texts";
import { linkToAsk } from "./state";
import { t } from "./text";
import type { EarlierQuestion, Turn } from "./turn";
import styles from "./EarlierQuestions.module.css";

export function AnsweredBefore({ before }: { before: EarlierQuestion }) {
  return (
    <p class={styles.before}>
      <Icon name="history" size={18} />
      <span>
        {t("before.answered", { date: formatDate(before.date), question: before.question })} <Votes of={before} />
      </span>
    </p>
  );
}

export function Offered({ turn, offered }: { turn: Turn; offered: readonly EarlierQuestion[] }) {
  return (
    <div class={styles.before}>
      <Icon name="history" size={18} />
      <div>
        {t("before.similar")}
        <ul>
          {offered.map((earlier) => (
            <li key={earlier.case_id}>
              <a href={linkToAsk({ ...turn, question: earlier.question })} lang={languageOf(earlier.question)}>
                {earlier.question}
              </a>{" "}
              {formatDate(earlier.date)}. <Votes of={earlier} />
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function Votes({ of: { votes } }: { of: EarlierQuestion }) {
  const { up, down } = votes;
  return <span class={styles.votes}>{up + down > 0 ? t("before.votes", { up, down }) : t("before.noVotes")}</span>;
}
