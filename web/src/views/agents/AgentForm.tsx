/** Branches, name and options of an agent, with the documents in reach and the manifest that they lead to. */
import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Empty, Failure } from "../../parts/States";
import { TreePicker } from "../../parts/TreePicker";
import { DEFAULTS, MOST_BRANCHES, previewOf, TOOLS, type Draft } from "./draft";
import { Manifest } from "./Manifest";
import { Reach } from "./Reach";
import { t } from "./text";
import styles from "./Agents.module.css";

interface Props {
  tree: components["schemas"]["TreeShape"];
  draft: Draft;
  /** The words of the button. */
  action: string;
  onChange: (part: Partial<Draft>) => void;
  onSave: () => Promise<void>;
  /** Loads the current edition after a conflict. */
  onReload?: () => void;
}

export function AgentForm({ tree, draft, action, onChange, onSave, onReload }: Props) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [saving, setSaving] = useState(false);
  const count = draft.paths.length;
  const tooMany = count > MOST_BRANCHES;
  const save = async () => {
    setSaving(true);
    setProblem(null);
    try {
      await onSave();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setSaving(false);
    }
  };
  if (tree.tree.length === 0) return <Empty title={t("form.noTree")} text={t("form.noTreeHelp")} />;
  return (
    <div class={styles.columns}>
      <div class={styles.form}>
        <Field
          label={t("agents.name")}
          hint={t("form.nameHint")}
          value={draft.name}
          maxLength={120}
          autocomplete="off"
          onInput={(name) => onChange({ name })}
        />
        <section>
          <h2>{t("agents.branches")}</h2>
          <p class={styles.small}>{t("form.branchesHint", { n: MOST_BRANCHES })}</p>
          <TreePicker
            tree={tree.tree}
            label={t("agents.branches")}
            selection={draft.paths}
            onSelect={(paths) => onChange({ paths })}
          />
        </section>
        <OptionFields draft={draft} onChange={onChange} />
      </div>
      <div class={styles.form}>
        <section aria-labelledby="agent-reach">
          <h2 id="agent-reach">{t("form.reach")}</h2>
          {tooMany ? <p role="alert">{t("form.tooMany", { n: MOST_BRANCHES })}</p> : <Reach paths={draft.paths} />}
        </section>
        <section>
          <h2>{t("form.preview")}</h2>
          <Manifest value={previewOf(draft, tree.version)} label={t("form.preview")} />
        </section>
        {problem && <Failure problem={problem} />}
        <div class={styles.row}>
          <Button kind="main" disabled={saving || count === 0 || tooMany} onClick={() => void save()}>
            {action}
          </Button>
          {problem?.kind === "conflict" && onReload && (
            <Button icon="retry" onClick={onReload}>
              {t("form.reload")}
            </Button>
          )}
        </div>
      </div>
    </div>
  );
}

function OptionFields({ draft, onChange }: Pick<Props, "draft" | "onChange">) {
  const number = { type: "number", autocomplete: "off" } as const;
  const candidates = { ...number, min: "1", max: "50" };
  const tools = [...TOOLS, ...draft.tools.filter((tool) => !TOOLS.includes(tool))];
  return (
    <details>
      <summary>{t("form.options")}</summary>
      <div class={styles.form}>
        <Field
          {...candidates}
          label={t("form.lexical")}
          hint={t("form.default", { value: DEFAULTS.lexical })}
          value={draft.lexical}
          onInput={(lexical) => onChange({ lexical })}
        />
        <Field
          {...candidates}
          label={t("form.vector")}
          hint={t("form.default", { value: DEFAULTS.vector })}
          value={draft.vector}
          onInput={(vector) => onChange({ vector })}
        />
        <Field
          {...number}
          min="10"
          max="90"
          label={t("form.threshold")}
          hint={t("form.default", { value: DEFAULTS.threshold })}
          value={draft.threshold}
          onInput={(threshold) => onChange({ threshold })}
        />
        <Field
          {...number}
          min="0"
          label={t("form.tokens")}
          hint={t("form.budgetHint")}
          value={draft.tokens}
          onInput={(tokens) => onChange({ tokens })}
        />
        <Field
          {...number}
          min="0"
          label={t("form.won")}
          hint={t("form.budgetHint")}
          value={draft.won}
          onInput={(won) => onChange({ won })}
        />
        <label class={styles.check}>
          <input
            type="checkbox"
            checked={draft.debate}
            onChange={(event) => onChange({ debate: event.currentTarget.checked })}
          />
          <span>{t("form.debate")}</span>
        </label>
        <fieldset class={styles.tools}>
          <legend>{t("form.tools")}</legend>
          {tools.map((tool) => (
            <label key={tool} class={styles.check}>
              <input
                type="checkbox"
                checked={draft.tools.includes(tool)}
                onChange={(event) =>
                  onChange({
                    tools: event.currentTarget.checked
                      ? [...draft.tools, tool]
                      : draft.tools.filter((other) => other !== tool),
                  })
                }
              />
              <code>{tool}</code>
            </label>
          ))}
        </fieldset>
      </div>
    </details>
  );
}
