/** What a version would change: documents that move, and who gains or loses sight of what. */
import type { components } from "../../api/schema";
import { ReachName } from "../../parts/moving/Acceptance";
import { t as moving } from "../../parts/moving/text";
import { pathText } from "./sentences";
import { t } from "./text";
import styles from "./Impact.module.css";

export type Effects = components["schemas"]["PreviewShape"];
type Moved = components["schemas"]["MovedShape"];
type Example = components["schemas"]["ExampleShape"];

export const documentsSentence = ({ documents }: Effects): string =>
  documents ? t("impact.documents", { n: documents }) : t("impact.noDocuments");

export function Impact({ effects }: { effects: Effects }) {
  return (
    <div class={styles.impact}>
      <p>{documentsSentence(effects)}</p>
      {effects.moved.length > 0 && (
        <ul class={styles.rows}>
          {effects.moved.map((moved) => (
            <MovedRow key={JSON.stringify([moved.from, moved.to])} moved={moved} />
          ))}
        </ul>
      )}
      {effects.access.length === 0 ? (
        <p>{moving("reach.none")}</p>
      ) : (
        <>
          <h4>{t("impact.access")}</h4>
          <ul class={styles.rows}>
            {effects.access.map((reach) => (
              <li key={`${reach.kind} ${reach.name}`}>
                <ReachName reach={reach} />
                <Examples title={t("impact.gained")} examples={reach.gains} total={reach.gained} />
                <Examples title={t("impact.lost")} examples={reach.losses} total={reach.lost} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

const place = (path: readonly string[]) => pathText(path) || t("impact.nowhere");

function MovedRow({ moved }: { moved: Moved }) {
  return (
    <li>
      <p>
        {t("diff.pair", { from: place(moved.from), to: place(moved.to) })}: {t("impact.moves", { n: moved.documents })}
      </p>
      {moved.titles.length > 0 && (
        <p class={styles.examples}>{t("impact.examples", { titles: moved.titles.join(", ") })}</p>
      )}
    </li>
  );
}

function Examples({ title, examples, total }: { title: string; examples: readonly Example[]; total: number }) {
  if (total === 0) return null;
  const more = total - examples.length;
  return (
    <div class={styles.examples}>
      <p>{title}</p>
      <ul>
        {examples.map((example, index) => (
          <li key={index}>{t("impact.example", { title: example.title, path: place(example.path) })}</li>
        ))}
        {more > 0 && <li>{t("impact.more", { n: more })}</li>}
      </ul>
    </div>
  );
}
