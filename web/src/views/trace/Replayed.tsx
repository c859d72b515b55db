/** An answer compared with the one of now: the verdict, its parts, and what has changed since. */
import type { components } from "../../api/schema";
import { Badge, type Tone } from "../../parts/Badge";
import { DataTable } from "../../parts/DataTable";
import { QuotedAnswer } from "../../parts/QuotedText";
import { StatementItems } from "../../parts/Statements";
import { sayStatement } from "../../state/statements";
import { t } from "./text";
import { deletedName } from "./titles";
import styles from "./TracePage.module.css";

export type Comparison = components["schemas"]["ReplayResponse"];
type Aspect = Comparison["aspects"][number];

const DOCUMENT = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

export const verdictOf = ({ same, explained }: Pick<Comparison, "same" | "explained">) =>
  same ? "replay.same" : explained ? "replay.explained" : "replay.unexplained";

const TONES = { "replay.same": "good", "replay.explained": "warn", "replay.unexplained": "bad" } satisfies Record<
  string,
  Tone
>;

/** A sentence that names documents by their ids, with their titles. */
export const titled = (text: string, titles: Comparison["titles"]): string =>
  text.replace(DOCUMENT, (id) => titles[id] ?? deletedName(id));

export function Replayed({ replayed }: { replayed: Comparison }) {
  const verdict = verdictOf(replayed);
  const { reasons, titles, notes, record } = replayed;
  return (
    <div class={styles.outcome}>
      <p>
        <Badge tone={TONES[verdict]}>{t(verdict)}</Badge>
      </p>
      <DataTable
        label={t("replay.compared")}
        rows={replayed.aspects}
        keyOf={({ name }) => name}
        columns={[
          {
            title: t("replay.compared"),
            render: ({ name, same }) => (
              <>
                {t(`aspect.${name}`)}{" "}
                <Badge tone={same ? "good" : "warn"}>{t(same ? "aspect.same" : "aspect.differs")}</Badge>
              </>
            ),
          },
          { title: t("replay.then"), render: (aspect) => <Value aspect={aspect} of="then" /> },
          { title: t("replay.now"), render: (aspect) => <Value aspect={aspect} of="now" /> },
        ]}
      />
      <h3>{t("replay.reasons")}</h3>
      {reasons.length === 0 && <p class={styles.hint}>{t("replay.noReasons")}</p>}
      <ul class={styles.points}>
        {reasons.map((reason) => {
          const { text, lang } = sayStatement(reason);
          return (
            <li key={text} lang={lang}>
              {titled(text, titles)}
            </li>
          );
        })}
      </ul>
      <ul class={styles.points}>
        <li>{t(`record.${record}`)}</li>
        <StatementItems statements={notes} />
      </ul>
      {!replayed.same && (
        <>
          <h3>{t("replay.answerNow")}</h3>
          <div class={styles.answer}>
            <QuotedAnswer text={replayed.text} sources={[]} />
          </div>
        </>
      )}
    </div>
  );
}

/** Texts are compared by their hashes, citations and passages by their numbers. */
function Value({ aspect, of }: { aspect: Aspect; of: "then" | "now" }) {
  const value = aspect[of];
  if (aspect.name === "text") return <code>{value}</code>;
  const known = value === "answer" || value === "review" || value === "abstain";
  return <>{aspect.name === "decision" && known ? t(`decision.${value}`) : value}</>;
}
