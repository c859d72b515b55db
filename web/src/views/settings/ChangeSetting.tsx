/** The form for a new value of a setting. For public branches it first shows what callers without a key would see. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { Segmented } from "../../parts/Segmented";
import { Failure } from "../../parts/States";
import { languageOf } from "../../text/language";
import { formatNumber } from "../../text/texts";
import { Branches } from "./Branches";
import { t } from "./text";
import styles from "./SettingsView.module.css";

export type Setting = components["schemas"]["SettingShape"];
export type Effect = components["schemas"]["PublicEffect"];
export type Change = NonNullable<Setting["change"]>;

interface Props {
  setting: Setting;
  change: Change;
  onClose: () => void;
  onChanged: (effect: Effect | null) => void;
}

export function ChangeSetting({ setting, change, onClose, onChanged }: Props) {
  const { name } = setting;
  const [value, setValue] = useState(String(setting.value ?? ""));
  const [effect, setEffect] = useState<Effect | null>(null);
  const [accepted, setAccepted] = useState(false);
  const [missing, setMissing] = useState(false);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const previews = change.kind === "branches" && effect === null;

  async function send(work: () => Promise<void>) {
    setWorking(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setWorking(false);
  }

  async function put() {
    const body = { value, accept_widening: accepted, dry_run: previews };
    const changed = await api.put("/settings/{name}", { path: { name }, body });
    if (previews) return setEffect(changed.public);
    onChanged(changed.public);
  }

  async function reset() {
    await api.delete("/settings/{name}", { path: { name } });
    onChanged(null);
  }

  return (
    <Dialog
      open
      title={t("change.of", { name: setting.environment })}
      onClose={onClose}
      footer={
        <>
          {setting.changed_by !== null && (
            <Button disabled={working} onClick={() => void send(reset)}>
              {t("change.default")}
            </Button>
          )}
          <Button onClick={onClose}>{t("change.cancel")}</Button>
          <Button
            kind="main"
            disabled={working}
            onClick={() => (effect?.widens && !accepted ? setMissing(true) : void send(put))}
          >
            {t(previews ? "change.preview" : "change.save")}
          </Button>
        </>
      }
    >
      <form
        class={styles.part}
        onSubmit={(event) => {
          event.preventDefault();
          void send(put);
        }}
      >
        <p lang={languageOf(setting.description)}>{setting.description}</p>
        {change.kind === "branches" ? (
          <Branches
            value={value}
            onChange={(branches) => {
              setValue(branches);
              setEffect(null);
              setAccepted(false);
              setMissing(false);
            }}
          />
        ) : change.kind === "choice" ? (
          <Segmented
            label={t("change.value")}
            value={value}
            choices={change.choices.map((choice) => ({ value: choice, text: choice, lang: "en" }))}
            onChange={setValue}
          />
        ) : (
          <Field label={t("change.value")} hint={hintOf(change)} value={value} onInput={setValue} />
        )}
        <div role="status">{effect && <Sees effect={effect} />}</div>
        {effect?.widens && (
          <label class={styles.check}>
            <input
              type="checkbox"
              checked={accepted}
              aria-invalid={missing && !accepted}
              onChange={(event) => setAccepted(event.currentTarget.checked)}
            />
            {t("change.accept")}
          </label>
        )}
        <p role="alert">{missing && !accepted && t("change.mustAccept")}</p>
        {problem && <Failure problem={problem} />}
      </form>
    </Dialog>
  );
}

function hintOf({ kind, least, most }: Change): string {
  if (kind === "colour") return t("change.colour");
  const limits = { least: formatNumber(least), most: formatNumber(most) };
  return t(kind === "text" ? "change.length" : "change.range", limits);
}

function Sees({ effect }: { effect: Effect }) {
  const { documents, gained, lost, branches } = effect;
  return (
    <>
      <p>{t("change.sees", { documents, gained, lost })}</p>
      <ul class={styles.branches}>
        {branches.map((branch) => (
          <li key={branch.path.join("/")}>
            {t("change.branch", { path: branch.path.join(" / "), documents: branch.documents })}
          </li>
        ))}
      </ul>
    </>
  );
}
