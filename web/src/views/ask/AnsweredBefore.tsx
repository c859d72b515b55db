/** The same question was answered before: when, and what its readers thought of it. */
import { Icon } from "../../parts/Icon";
import { formatDate } from "../../text/texts";
import { t } from "./text";
import type { AnsweredBefore as Before } from "./turns";
import styles from "./AnsweredBefore.module.css";

export function AnsweredBefore({ before }: { before: Before }) {
  const { up, down } = before.votes;
  return (
    <p class={styles.before}>
      <Icon name="history" size={18} />
      <span>
        {t("before.answered", { date: formatDate(before.date), question: before.question })}{" "}
        <span class={styles.votes}>{up + down > 0 ? t("before.votes", { up, down }) : t("before.noVotes")}</span>
      </span>
    </p>
  );
}
