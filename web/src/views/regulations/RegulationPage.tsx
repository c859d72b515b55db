/** One regulation: its outline, two of its days side by side, or its citations that need a look. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Page } from "../../parts/Page";
import { Segmented } from "../../parts/Segmented";
import { Loaded } from "../../parts/States";
import { AsOf } from "./AsOf";
import { Editions } from "./Editions";
import { OutlineList } from "./OutlineList";
import { Stale } from "./Stale";
import { address, asOfQuery, PARTS } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

export function RegulationPage({ name }: { name: string }) {
  const { asOf, part } = address.read();
  const outline = useResource(
    (signal) => api.get("/regulations/outline", { query: { regulation: name, ...asOfQuery(asOf) }, signal }),
    [name, asOf],
  );
  return (
    <Page title={<span lang="ko">{outline.data?.name ?? name}</span>} lead={outline.data?.code}>
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
          {part !== "editions" && <AsOf />}
        </div>
        <Loaded resource={outline} lines={10}>
          {(shown) => (
            <>
              {part === "outline" && <OutlineList outline={shown} />}
              {part === "editions" && <Editions key={shown.name} outline={shown} />}
              {part === "stale" && <Stale regulation={shown.name} />}
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}
