/** One regulation: its text, two of its editions side by side, or its citations that need a look. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Page } from "../../parts/Page";
import { Segmented } from "../../parts/Segmented";
import { Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { DayChoice } from "./DayChoice";
import { Editions } from "./Editions";
import { Stale } from "./Stale";
import { address, asOfQuery, daysOf, PARTS, type Whole } from "./state";
import { t } from "./text";
import { WholeText } from "./WholeText";
import styles from "./Regulations.module.css";

/** `at`: the article that it is opened at. */
export function RegulationPage({ name, at }: { name: string; at: string }) {
  const { asOf, part } = address.read();
  const whole = useResource(
    (signal) => api.get("/regulations/text", { query: { regulation: name, ...asOfQuery(asOf) }, signal }),
    [name, asOf],
  );
  return (
    <Page
      title={<span lang="ko">{whole.data?.name ?? name}</span>}
      lead={whole.data?.code}
      actions={whole.data && <AskLink name={whole.data.name} asOf={asOf} />}
    >
      <p>
        <a href={href("regulations", { query: { asOf: asOf || undefined } })}>{t("page.back")}</a>
      </p>
      <div class={styles.part}>
        <div class={styles.controls}>
          <Segmented
            label={t("page.part")}
            value={part}
            choices={PARTS.map((value) => ({ value, text: t(`part.${value}`) }))}
            onChange={(value) => address.set({ part: value, offset: 0 })}
          />
          {part !== "editions" && whole.data && <EditionChoice whole={whole.data} />}
        </div>
        <Loaded resource={whole} lines={10}>
          {(shown) => (
            <>
              {part === "text" && <WholeText whole={shown} at={at} />}
              {part === "editions" && <Editions key={shown.name} whole={shown} />}
              {part === "stale" && <Stale regulation={shown.name} />}
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

/** Ask answers from this regulation only. */
const AskLink = ({ name, asOf }: { name: string; asOf: string }) => (
  <a class={styles.action} href={href("ask", { query: { regulation: name, as_of: asOf || undefined } })}>
    {t("page.ask")}
  </a>
);

/** The edition whose text is shown. */
function EditionChoice({ whole: { editions } }: { whole: Whole }) {
  const { asOf } = address.read();
  const days = daysOf(editions, asOf);
  if (days.length === 0) return null;
  return (
    <DayChoice
      label={t("edition.label")}
      value={asOf}
      days={["", ...days]}
      textOf={(day) => (day ? t("edition.from", { day: formatDate(day) }) : t("edition.today"))}
      onChange={(day) => address.set({ asOf: day, offset: 0 })}
    />
  );
}
