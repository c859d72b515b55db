/** A regulation on two days, provision by provision side by side. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { segments } from "../../parts/code-points";
import { Empty, Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { DayChoice } from "./DayChoice";
import { address, dayOf, daysOf, type Change, type Whole } from "./state";
import { t } from "./text";
import styles from "./Editions.module.css";

const TONES = { amended: "accent", added: "good", deleted: "bad" } as const;

export function Editions({ whole }: { whole: Whole }) {
  const state = address.read();
  const [last = "", earlier = ""] = daysOf(whole.editions);
  const before = dayOf(state.before) ?? earlier;
  const after = dayOf(state.after) ?? last;
  const days = daysOf(whole.editions, before, after);
  const diff = useResource(
    before && after
      ? (signal) => api.get("/regulations/diff", { query: { regulation: whole.name, before, after }, signal })
      : null,
    [whole.name, before, after],
  );
  return (
    <section class={styles.editions} aria-label={t("part.editions")}>
      {days.length > 0 && (
        <div class={styles.days}>
          {(["before", "after"] as const).map((side) => (
            <DayChoice
              key={side}
              label={t(`editions.${side}`)}
              value={side === "before" ? before : after}
              days={days}
              textOf={(day) => t("edition.from", { day: formatDate(day) })}
              onChange={(day) => address.set({ [side]: day }, { replace: true })}
            />
          ))}
        </div>
      )}
      {before && after ? (
        <Loaded resource={diff} lines={8}>
          {({ changes, unchanged }) =>
            changes.length === 0 ? (
              <Empty title={t("editions.same")} text={t("editions.sameHelp")}>
                <TextLink />
              </Empty>
            ) : (
              <>
                <p role="status">{t("editions.changed", { n: changes.length, same: unchanged })}</p>
                <p class={styles.legend}>
                  <del>{t("editions.removed")}</del> <ins>{t("editions.added")}</ins>
                </p>
                {changes.map((change, number) => (
                  <Changed key={number} change={change} />
                ))}
              </>
            )
          }
        </Loaded>
      ) : (
        <Empty title={t("editions.single")} text={t("editions.singleHelp")}>
          <TextLink />
        </Empty>
      )}
    </section>
  );
}

const TextLink = () => <a href={address.link({ part: "text" })}>{t("editions.text")}</a>;

function Changed({ change }: { change: Change }) {
  return (
    <section class={styles.change}>
      <h2>
        <span lang="ko">{change.title ? `${change.label} (${change.title})` : change.label}</span>{" "}
        <Badge tone={TONES[change.change]}>{t(`change.${change.change}`)}</Badge>
      </h2>
      <div class={styles.sides}>
        <Side title={t("editions.before")} text={change.before} spans={change.before_spans} mark="del" />
        <Side title={t("editions.after")} text={change.after} spans={change.after_spans} mark="ins" />
      </div>
    </section>
  );
}

interface SideProps {
  title: string;
  text: string;
  spans: Change["before_spans"];
  mark: "del" | "ins";
}

function Side({ title, text, spans, mark: Mark }: SideProps) {
  const pieces = segments(
    text,
    spans.map(([start, end]) => ({ start, end, kind: Mark })),
  );
  return (
    <div class={styles.side}>
      <h3>{title}</h3>
      {text ? (
        <p lang="ko">
          {pieces.map((piece) => (piece.kinds.length > 0 ? <Mark key={piece.start}>{piece.text}</Mark> : piece.text))}
        </p>
      ) : (
        <p class={styles.none}>{t("editions.noText")}</p>
      )}
    </div>
  );
}
