/** Case memory: questions that were answered before, how good those answers are, and whether they may be reused. */
import type { ComponentChildren } from "preact";
import { useResource } from "../../state/resource";
import { route } from "../../state/router";
import { api } from "../../api/client";
import { Page } from "../../parts/Page";
import { Loaded } from "../../parts/States";
import { CaseList } from "./CaseList";
import { CasePage } from "./CasePage";
import { NotEnabled, NOT_ENABLED } from "./NotEnabled";
import { Similar } from "./Similar";
import { address } from "./state";
import { Statistics } from "./Statistics";
import { t } from "./text";

export default function CasesView() {
  const id = route.value.path[0];
  return id ? <CasePage key={id} id={id} /> : <Overview />;
}

function Overview() {
  const stats = useResource((signal) => api.get("/cbr/stats", { signal }), []);
  const { q } = address.read();
  let content: ComponentChildren;
  if (stats.problem?.status === NOT_ENABLED) content = <NotEnabled />;
  else
    content = (
      <Loaded resource={stats} lines={6}>
        {(figures) => (
          <>
            <Statistics figures={figures} />
            <Similar />
            {!q && <CaseList onChange={stats.reload} />}
          </>
        )}
      </Loaded>
    );
  return (
    <Page title={t("cases.title")} lead={t("cases.lead")}>
      {content}
    </Page>
  );
}
