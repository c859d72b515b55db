/** The last question before a version becomes active: what changes, and whether wider access is accepted. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { useAcceptance } from "../../parts/moving/Acceptance";
import { Failure } from "../../parts/States";
import { documentsSentence, type Effects } from "./Impact";
import { t } from "./text";
import styles from "./BringIn.module.css";

interface Props {
  effects: Effects;
  /** Whether the version was active before. */
  back: boolean;
  onClose: () => void;
  onDone: () => void;
}

export function BringIn({ effects, back, onClose, onDone }: Props) {
  const acceptance = useAcceptance();
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { version } = effects;
  const widened = effects.access.some((reach) => reach.gained > 0);

  async function bringIn() {
    if (!acceptance.given(effects, widened)) return;
    setWorking(true);
    setProblem(null);
    const options = { path: { version }, body: acceptance.body };
    try {
      await (back
        ? api.post("/taxonomy/{version}/rollback", options)
        : api.post("/taxonomy/{version}/activate", options));
    } catch (error) {
      setProblem(asProblem(error));
      setWorking(false);
      return;
    }
    announce(t("bring.activated", { version }));
    onClose();
    onDone();
  }

  return (
    <Dialog
      open
      title={t(back ? "bring.rollback" : "bring.activate", { version })}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("do.cancel")}</Button>
          <Button kind="main" disabled={working} onClick={() => void bringIn()}>
            {working ? t("bring.working") : t(back ? "version.rollback" : "version.activate")}
          </Button>
        </>
      }
    >
      <div class={styles.bring}>
        <p>{t("bring.from", { active: effects.active })}</p>
        <p>{documentsSentence(effects)}</p>
        {acceptance.boxes(effects, widened)}
        {problem && <Failure problem={problem} />}
      </div>
    </Dialog>
  );
}
