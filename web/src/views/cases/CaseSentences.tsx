/** What a case is for, what people said of it, and why it is not used, in sentences. */
import { href } from "../../state/router";
import { formatDate } from "../../text/texts";
import type { ShownCase } from "./state";
import { t } from "./text";
import styles from "./CasePage.module.css";

export function CaseSentences({ shown }: { shown: ShownCase }) {
  const { reuse, supporters, supported_at: supported, downvotes, right, wrong, origin, as_of: day } = shown;
  return (
    <ul class={styles.sentences}>
      {reuse === "reused" ? (
        <li>{t("reuse.reused")}</li>
      ) : (
        <li class={styles.stale}>
          {t("reuse.not")} {t(`why.${reuse}`)}{" "}
          {reuse === "thumbs_down" && <a href={href("review")}>{t("why.toReview")}</a>}
        </li>
      )}
      <li>
        {supported ? t("case.supported", { n: supporters, date: formatDate(supported) }) : t("case.noVotes")}{" "}
        {downvotes > 0 && t("case.down", { n: downvotes })}
      </li>
      {right + wrong > 0 && <li>{t("reuse.right", { right, n: right + wrong })}</li>}
      <li>
        {t(`origin.${origin}`, { date: formatDate(shown.created_at) })}{" "}
        {day && t("case.asOf", { date: formatDate(day) })}
      </li>
    </ul>
  );
}
