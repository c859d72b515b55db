/** Keys: who may use the service, and what each sees. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { caller } from "../../state/session";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Badge, type Tone } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { DataTable } from "../../parts/DataTable";
import { Dialog } from "../../parts/Dialog";
import { Page } from "../../parts/Page";
import { Empty, Failure, Loaded } from "../../parts/States";
import { formatDate, formatDateTime } from "../../text/texts";
import { NewKey } from "./NewKey";
import { t } from "./text";

type Key = components["schemas"]["KeyShape"];
const TONES: Record<Key["state"], Tone> = { valid: "good", expired: "warn", revoked: "neutral" };

export default function KeysView() {
  const keys = useResource((signal) => api.get("/keys", { signal }), []);
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const create = (
    <Button kind="main" onClick={() => setCreating(true)}>
      {t("keys.create")}
    </Button>
  );
  return (
    <Page title={t("keys.title")} lead={t("keys.lead")} actions={create}>
      <Loaded resource={keys} lines={5}>
        {({ keys: rows }) =>
          rows.length === 0 ? (
            <Empty title={t("keys.none")} text={t("keys.noneHelp")}>
              <Button onClick={() => setCreating(true)}>{t("keys.create")}</Button>
            </Empty>
          ) : (
            <KeyTable rows={rows} onRevoke={setRevoking} />
          )
        }
      </Loaded>
      {creating && <NewKey onClose={() => setCreating(false)} onCreated={keys.reload} />}
      {revoking && <Revoke row={revoking} onClose={() => setRevoking(null)} onDone={keys.reload} />}
    </Page>
  );
}

/** Its branches, as whom it reads what the rights of a source restrict, and whether it sees originals. */
const scopeOf = ({ scope, principals, originals }: Key): string => {
  const branches = scope?.join(", ") ?? t("keys.whole");
  const read = principals.length ? t("keys.as", { branches, users: principals.join(", ") }) : branches;
  return originals ? t("keys.withOriginals", { read }) : read;
};
const lastUse = (row: Key): string => (row.last_used_at ? formatDateTime(row.last_used_at) : t("keys.never"));

function KeyTable({ rows, onRevoke }: { rows: readonly Key[]; onRevoke: (row: Key) => void }) {
  return (
    <DataTable
      label={t("keys.list")}
      rows={rows}
      keyOf={(row) => row.prefix}
      columns={[
        {
          title: t("keys.name"),
          render: (row) => (
            <>
              {row.name} <code>{row.prefix}…</code>
            </>
          ),
        },
        { title: t("keys.role"), render: (row) => t(`role.${row.role}`) },
        { title: t("keys.scope"), render: scopeOf },
        {
          title: t("keys.state"),
          render: (row) => <Badge tone={TONES[row.state]}>{t(`state.${row.state}`)}</Badge>,
        },
        {
          title: t("keys.used"),
          render: lastUse,
        },
        {
          title: t("keys.expires"),
          render: (row) => (row.expires_at ? formatDate(row.expires_at) : t("keys.noExpiry")),
        },
        {
          title: t("keys.actions"),
          render: (row) =>
            row.state === "valid" && (
              <Button small danger aria-label={t("keys.revokeName", { name: row.name })} onClick={() => onRevoke(row)}>
                {t("keys.revoke")}
              </Button>
            ),
        },
      ]}
    />
  );
}

function Revoke({ row, onClose, onDone }: { row: Key; onClose: () => void; onDone: () => void }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const revoke = async () => {
    try {
      await api.delete("/keys/{name}", { path: { name: row.name } });
      announce(t("keys.revoked", { name: row.name }));
      onDone();
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <Dialog
      title={t("keys.revokeTitle", { name: row.name })}
      open
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("keys.cancel")}</Button>
          <Button kind="main" danger onClick={() => void revoke()}>
            {t("keys.revoke")}
          </Button>
        </>
      }
    >
      <p>
        {t("keys.loses", { name: row.name, role: t(`role.${row.role}`), scope: scopeOf(row) })}{" "}
        {t("keys.lastUsed", { when: lastUse(row) })}
      </p>
      <p>{t("keys.revokeHelp")}</p>
      {caller.value?.name === row.name && !caller.value.local && (
        <p>
          <strong>{t("keys.own")}</strong>
        </p>
      )}
      {problem && <Failure problem={problem} />}
    </Dialog>
  );
}
