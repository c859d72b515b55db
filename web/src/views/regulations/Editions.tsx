/** A regulation on two days, provision by provision side by side. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { segments } from "../../parts/code-points";
import { Field } from "../../parts/Field";
import { Empty, Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { address, dayOf, lastTwoDays, type Change, type Outline } from "./state";
import { t } from "./text";
import styles from "./Editions.module.css";

const TONES = { amended: "accent", added: "good", deleted: "bad" } as const;

export function Editions({ outline }: { outline: Outline }) {
  const state = address.read();
  const days = lastTwoDays(outline.editions);
  const before = state.before || (days?.[0] ?? "");
  const after = state.after || (days?.[1] ?? "");
  const whole = dayOf(before) !== null && dayOf(after) !== null;
  const diff = useResource(
    whole
      ? (signal) => api.get("/regulations/diff", { query: { regulation: outline.name, before, after }, signal })
      : null,
    [outline.name, before, after],
  );
  return (
    <section class={styles.editions} aria-label={t("part.editions")}>
      <p>
        {outline.editions.length === 0
          ? t("editions.undated")
          : t("editions.days", {
              days: outline.editions.map(({ effective_from: day }) => (day ? formatDate(day) : "–")).join(" · "),
            })}
      </p>
      <div class={styles.days}>
        <Field
          type="date"
          label={t("editions.before")}
          value={before}
          onInput={(value) => address.set({ before: value }, { replace: true })}
        />
        <Field
          type="date"
          label={t("editions.after")}
          value={after}
          onInput={(value) => address.set({ after: value }, { replace: true })}
        />
      </div>
      {whole ? (
        <Loaded resource={diff} lines={8}>
          {({ changes, unchanged }) =>
            changes.length === 0 ? (
              <Empty title={t("editions.same")} text={t("editions.sameHelp")}>
                <OutlineLink />
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
        <Empty
          title={t(days ? "editions.choose" : "editions.single")}
          text={t(days ? "editions.chooseHelp" : "editions.singleHelp")}
        >
          <OutlineLink />
        </Empty>
      )}
    </section>
  );
}

const OutlineLink = () => <a href={address.link({ part: "outline" })}>{t("editions.outline")}</a>;

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
