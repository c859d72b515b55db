/** Branches, name and options of an agent in words, with the documents in reach. */
import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Segmented } from "../../parts/Segmented";
import { Empty, Failure } from "../../parts/States";
import { TreePicker } from "../../parts/TreePicker";
import { DEFAULT_THRESHOLD, depthOf, DEPTHS, MOST_BRANCHES, type Depth, type Draft } from "./draft";
import { Reach } from "./Reach";
import { t } from "./text";
import { nameOfTool, TOOLS, useOfTool } from "./tools";
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
  const candidates = { ...number, min: "1", max: "50", hint: t("form.default", { value: 12 }) };
  return (
    <>
      <section class={styles.form}>
        <Segmented<Depth | "">
          label={t("form.depth")}
          value={depthOf(draft) ?? ""}
          choices={(Object.keys(DEPTHS) as Depth[]).map((value) => ({ value, text: t(`depth.${value}`) }))}
          onChange={(value) => value && onChange({ lexical: DEPTHS[value], vector: DEPTHS[value] })}
        />
        <p class={styles.small}>{t("form.depthHint")}</p>
        <details open={depthOf(draft) === undefined}>
          <summary>{t("form.own")}</summary>
          <div class={styles.form}>
            <Field
              {...candidates}
              label={t("form.lexical")}
              value={draft.lexical}
              onInput={(lexical) => onChange({ lexical })}
            />
            <Field
              {...candidates}
              label={t("form.vector")}
              value={draft.vector}
              onInput={(vector) => onChange({ vector })}
            />
          </div>
        </details>
      </section>
      <section class={styles.form}>
        <h2>{t("form.unsure")}</h2>
        <Field
          {...number}
          min="10"
          max="90"
          label={t("form.threshold")}
          hint={t("form.default", { value: DEFAULT_THRESHOLD })}
          value={draft.threshold}
          onInput={(threshold) => onChange({ threshold })}
        />
        <Check label={t("form.debate")} checked={draft.debate} onChange={(debate) => onChange({ debate })} />
      </section>
      <section class={styles.form}>
        <h2>{t("form.cost")}</h2>
        <p class={styles.small}>{t("form.costHint")}</p>
        <Field
          {...number}
          min="0"
          label={t("form.tokens")}
          value={draft.tokens}
          onInput={(tokens) => onChange({ tokens })}
        />
        <Field {...number} min="0" label={t("form.won")} value={draft.won} onInput={(won) => onChange({ won })} />
      </section>
      <fieldset class={styles.tools}>
        <legend>{t("form.tools")}</legend>
        {[...new Set([...TOOLS, ...draft.tools])].map((tool) => (
          <Check
            key={tool}
            label={`${nameOfTool(tool)}: ${useOfTool(tool)}`}
            checked={draft.tools.includes(tool)}
            onChange={(on) =>
              onChange({ tools: on ? [...draft.tools, tool] : draft.tools.filter((other) => other !== tool) })
            }
          />
        ))}
      </fieldset>
    </>
  );
}

function Check(props: { label: string; checked: boolean; onChange: (on: boolean) => void }) {
  return (
    <label class={styles.check}>
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.label}</span>
    </label>
  );
}
