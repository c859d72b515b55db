/** All regulations: their list, the citations that need a look, and the check of a pasted text. */
import { Page } from "../../parts/Page";
import { Segmented } from "../../parts/Segmented";
import { AsOf } from "./AsOf";
import { RegulationList } from "./RegulationList";
import { Stale } from "./Stale";
import { address, SHOWN } from "./state";
import { t } from "./text";
import { Verify } from "./Verify";
import styles from "./Regulations.module.css";

export function RegulationsPage() {
  const { show } = address.read();
  return (
    <Page title={t("list.title")} lead={t(`lead.${show}`)}>
      <div class={styles.part}>
        <div class={styles.controls}>
          <Segmented
            label={t("page.part")}
            value={show}
            choices={SHOWN.map((value) => ({ value, text: t(`show.${value}`) }))}
            onChange={(value) => address.set({ show: value, offset: 0 })}
          />
          {show !== "verify" && <AsOf />}
        </div>
        {show === "list" && <RegulationList />}
        {show === "stale" && <Stale />}
        {show === "verify" && <Verify />}
      </div>
    </Page>
  );
}
