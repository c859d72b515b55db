/** The last question before a version becomes active: what changes, and whether wider access is accepted. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Failure } from "../../parts/States";
import { documentsSentence, nameOf, ReachName, type Effects } from "./Impact";
import { t } from "./text";
import styles from "./BringIn.module.css";

interface Props {
  effects: Effects;
  /** Whether the version was active before. */
  back: boolean;
  onClose: () => void;
  onDone: () => void;
}

const NAMES_SHOWN = 2;

function fallOf(change: Effects["lowered"][number]): string {
  return `${change.path.join("/") || "—"} (${change.from} → ${change.to})`;
}

export function BringIn({ effects, back, onClose, onDone }: Props) {
  const [accepted, setAccepted] = useState(false);
  const [acceptedLower, setAcceptedLower] = useState(false);
  const [missing, setMissing] = useState(false);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { version, lowered } = effects;
  const widened = effects.access.filter((reach) => reach.gained > 0);
  const names = widened.length > NAMES_SHOWN ? t("bring.names", { n: widened.length }) : widened.map(nameOf).join(", ");
  const waiting = (widened.length > 0 && !accepted) || (lowered.length > 0 && !acceptedLower);

  async function bringIn() {
    if (waiting) return setMissing(true);
    setWorking(true);
    setProblem(null);
    const options = { path: { version }, body: { accept_widening: accepted, accept_lowering: acceptedLower } };
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
        {effects.access.length === 0 && <p>{t("impact.noAccess")}</p>}
        {effects.access.map((reach) => (
          <ReachName key={`${reach.kind} ${reach.name}`} reach={reach} />
        ))}
        {widened.length > 0 && (
          <label class={styles.accept}>
            <input
              type="checkbox"
              checked={accepted}
              aria-invalid={missing && !accepted}
              onChange={(event) => setAccepted(event.currentTarget.checked)}
            />
            {t("bring.accept", { names })}
          </label>
        )}
        {lowered.length > 0 && (
          <label class={styles.accept}>
            <input
              type="checkbox"
              checked={acceptedLower}
              aria-invalid={missing && !acceptedLower}
              onChange={(event) => setAcceptedLower(event.currentTarget.checked)}
            />
            {t("bring.acceptLower", { branches: lowered.map(fallOf).join(", ") })}
          </label>
        )}
        <p class={styles.missing} role="alert">
          {missing && waiting && t("bring.mustAccept")}
        </p>
        {problem && <Failure problem={problem} />}
      </div>
    </Dialog>
  );
}
