/** Settings and health: how this service works now, and what can be changed while it runs. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { queryState, flag, text } from "../../state/query";
import { useResource } from "../../state/resource";
import { mayWholeTreeAs } from "../../state/session";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Badge, type Tone } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { DataTable } from "../../parts/DataTable";
import { Field } from "../../parts/Field";
import { Page } from "../../parts/Page";
import { Said } from "../../parts/Statements";
import { Empty, Loaded } from "../../parts/States";
import { language, languageOf } from "../../text/language";
import { formatDateTime } from "../../text/texts";
import { ChangeSetting, type Setting } from "./ChangeSetting";
import { matching } from "./matching";
import { t } from "./text";
import { todo } from "./todo";
import styles from "./SettingsView.module.css";

type Health = components["schemas"]["Health"];
type Flag = components["schemas"]["FlagShape"];
const TONES: Record<Health["status"], Tone> = { healthy: "good", degraded: "warn", unhealthy: "bad" };
const address = queryState({ q: text(), changed: flag() });

export default function SettingsView() {
  return (
    <Page title={t("settings.title")} lead={t("settings.lead")}>
      <HealthPart />
      <Configured />
    </Page>
  );
}

function HealthPart() {
  const health = useResource((signal) => api.get("/health", { signal }), []);
  return (
    <section class={styles.part} aria-labelledby="health">
      <h2 id="health">{t("health.title")}</h2>
      <Loaded resource={health}>
        {(found) => (
          <>
            <p class={styles.line}>
              <Badge tone={TONES[found.status]}>{t(`status.${found.status}`)}</Badge>
              {"version" in found && <span>{t("health.version", { version: found.version })}</span>}
            </p>
            {"checks" in found && <Checks checks={found.checks} />}
          </>
        )}
      </Loaded>
    </section>
  );
}

function Checks({ checks }: { checks: Health["checks"] }) {
  return (
    <DataTable
      label={t("health.checks")}
      rows={Object.entries(checks)}
      keyOf={([name]) => name}
      columns={[
        { title: t("health.part"), render: ([name]) => name.replaceAll("_", " ") },
        {
          title: t("health.state"),
          render: ([, check]) => <Badge tone={TONES[check.status]}>{t(`status.${check.status}`)}</Badge>,
        },
        {
          title: t("health.detail"),
          render: ([name, check]) => (
            <span class={styles.value}>
              <Said text={check.reason} statements={check.reason_statements} />
              {check.status !== "healthy" && <strong>{todo(name)}</strong>}
            </span>
          ),
        },
      ]}
    />
  );
}

function Configured() {
  const tag = language.value;
  const settings = useResource(mayWholeTreeAs("admin") ? (signal) => api.get("/settings", { signal }) : null, [tag]);
  if (!mayWholeTreeAs("admin")) return null;
  return (
    <Loaded resource={settings} lines={8}>
      {(found) => (
        <>
          <Flags flags={found.flags} />
          <Settings settings={found.settings} reload={settings.reload} />
        </>
      )}
    </Loaded>
  );
}

function Flags({ flags }: { flags: readonly Flag[] }) {
  return (
    <section class={styles.part} aria-labelledby="flags">
      <h2 id="flags">{t("flags.title")}</h2>
      <p class={styles.hint}>{t("flags.lead")}</p>
      <DataTable
        label={t("flags.title")}
        rows={flags}
        keyOf={(row) => row.name}
        columns={[
          { title: t("flags.name"), render: (row) => <code>FEATURE_{row.name.toUpperCase()}</code> },
          {
            title: t("health.state"),
            render: (row) => <Badge tone={row.on ? "accent" : "neutral"}>{t(row.on ? "flags.on" : "flags.off")}</Badge>,
          },
          {
            title: t("settings.meaning"),
            render: (row) => <span lang={languageOf(row.description)}>{row.description}</span>,
          },
        ]}
      />
    </section>
  );
}

function Settings({ settings, reload }: { settings: readonly Setting[]; reload: () => void }) {
  const { q, changed } = address.read();
  const [open, setOpen] = useState<Setting | null>(null);
  const [saved, setSaved] = useState({ name: "", text: "" });
  const rows = matching(settings, q, changed);
  const here = rows.filter((row) => row.change && !row.fixed);
  const name = { title: t("settings.name"), render: (row: Setting) => <Name of={row.environment} /> };
  const value = { title: t("settings.value"), render: (row: Setting) => <Value row={row} /> };
  const changeable = (row: Setting) => (
    <Value row={row}>
      {saved.name === row.name && <strong>{saved.text}</strong>}
      <Button small aria-label={t("change.of", { name: row.environment })} onClick={() => setOpen(row)}>
        {t("change.do")}
      </Button>
    </Value>
  );
  const meaning = {
    title: t("settings.meaning"),
    render: (row: Setting) => <span lang={languageOf(row.description)}>{row.description}</span>,
  };
  return (
    <section class={styles.part} aria-labelledby="settings">
      <h2 id="settings">{t("settings.here")}</h2>
      <div class={styles.tools}>
        <Field
          type="search"
          label={t("settings.search")}
          value={q}
          onInput={(value) => address.set({ q: value }, { replace: true })}
        />
        <label class={styles.check}>
          <input
            type="checkbox"
            checked={changed}
            onChange={() => address.set({ changed: !changed }, { replace: true })}
          />
          {t("settings.onlyChanged")}
        </label>
      </div>
      {rows.length === 0 ? (
        <Empty title={t("settings.none")} text={t("settings.noneHelp")}>
          <Button onClick={() => address.set({ q: "", changed: false })}>{t("settings.all")}</Button>
        </Empty>
      ) : (
        <>
          {here.length > 0 && (
            <DataTable
              label={t("settings.here")}
              rows={here}
              keyOf={(row) => row.name}
              columns={[name, { ...value, render: changeable }, meaning]}
            />
          )}
          <h2>{t("settings.list")}</h2>
          <DataTable
            label={t("settings.list")}
            rows={rows.filter((row) => !here.includes(row))}
            keyOf={(row) => row.name}
            columns={[name, value, meaning]}
          />
        </>
      )}
      {open?.change && (
        <ChangeSetting
          setting={open}
          change={open.change}
          onClose={() => setOpen(null)}
          onChanged={(effect) => {
            const sees = effect ? ` ${t("change.seesNow", { documents: effect.documents })}` : "";
            const text = t("change.saved", { name: open.environment }) + sees;
            setSaved({ name: open.name, text });
            announce(text);
            setOpen(null);
            reload();
          }}
        />
      )}
    </section>
  );
}

/** Breaks behind underlines where the column is narrow. */
const Name = ({ of }: { of: string }) => (
  <code class={styles.name}>
    {of.split("_").map((part, place) => (place ? ["_", <wbr key={place} />, part] : part))}
  </code>
);

const shown = (value: Setting["value"]): string =>
  value === null || value === "" ? t("settings.empty") : String(value);

function Value({ row, children }: { row: Setting; children?: ComponentChildren }) {
  return (
    <span class={styles.value}>
      <span>{shown(row.value)}</span>
      {!row.is_default && (
        <span class={styles.hint}>{t("settings.changed", { value: row.secret ? "" : shown(row.default) })}</span>
      )}
      {row.changed_by !== null && row.changed_at !== null && (
        <span class={styles.hint}>
          {t("settings.by", { name: row.changed_by, date: formatDateTime(row.changed_at) })}
        </span>
      )}
      {row.change && row.fixed && <span class={styles.hint}>{t("settings.fixed")}</span>}
      {children}
    </span>
  );
}
