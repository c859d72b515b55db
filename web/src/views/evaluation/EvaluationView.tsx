/** Evaluation: the runs that were kept, one run with its questions, and two runs side by side. */
import { route } from "../../state/router";
import { Page } from "../../parts/Page";
import { RunList } from "./RunList";
import { RunPage } from "./RunPage";
import { t } from "./text";

export default function EvaluationView() {
  const id = route.value.path[0];
  if (id) return <RunPage key={id} id={id} />;
  return (
    <Page title={t("evaluation.title")} lead={t("evaluation.lead")}>
      <RunList />
    </Page>
  );
}
