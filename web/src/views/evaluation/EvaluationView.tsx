/** Evaluation: the runs that were kept, one run with its questions, and two runs side by side. */
import { useState } from "preact/hooks";
import { route } from "../../state/router";
import { Page } from "../../parts/Page";
import { JobsPart } from "../../parts/jobs/JobsPart";
import { RunList } from "./RunList";
import { RunPage } from "./RunPage";
import { StartRun } from "./StartRun";
import { t } from "./text";

export default function EvaluationView() {
  const id = route.value.path[0];
  const [started, setStarted] = useState(0);
  const [ended, setEnded] = useState(0);
  if (id) return <RunPage key={id} id={id} />;
  return (
    <Page title={t("evaluation.title")} lead={t("evaluation.lead")}>
      <StartRun onStarted={() => setStarted(started + 1)} />
      <JobsPart kind="evaluation" added={started} onEnded={() => setEnded((n) => n + 1)} />
      <RunList ended={ended} />
    </Page>
  );
}
