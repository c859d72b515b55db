/** The differences between a version and another one; the other is in the address. */
import { useId } from "preact/hooks";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Loaded } from "../../parts/States";
import { pathText } from "./sentences";
import { address } from "./state";
import { t } from "./text";
import type { Version } from "./Versions";
import styles from "./Compare.module.css";

type Diff = components["schemas"]["DiffShape"];
const PATHS = ["added", "removed"] as const;
const PAIRS = ["moved", "renamed", "merged"] as const;

export function Compare({ version, all }: { version: Version; all: Version[] }) {
  const id = useId();
  const others = all.filter((row) => row.version !== version.version);
  const chosen = address.read().base;
  const base =
    others.find((row) => row.version === chosen)?.version ?? version.parent ?? others.at(-1)?.version ?? null;
  const diff = useResource(
    base === null
      ? null
      : (signal) => api.get("/taxonomy/{version}/diff/{base}", { path: { version: version.version, base }, signal }),
    [version.version, base],
  );
  return (
    <section class={styles.compare}>
      <h3>{t("diff.title")}</h3>
      {base === null ? (
        <p class={styles.none}>{t("diff.alone")}</p>
      ) : (
        <>
          <div class={styles.base}>
            <label for={id}>{t("diff.base")}</label>
            <select
              id={id}
              value={base}
              onChange={(event) => address.set({ base: event.currentTarget.value }, { replace: true })}
            >
              {others.map((row) => (
                <option key={row.version} value={row.version}>
                  {row.active ? `${row.version} (${t("versions.active")})` : row.version}
                </option>
              ))}
            </select>
          </div>
          <Loaded resource={diff}>{(shown) => <Differences diff={shown} />}</Loaded>
        </>
      )}
    </section>
  );
}

function Differences({ diff }: { diff: Diff }) {
  const lists = [
    ...PATHS.map((kind) => ({ kind, lines: diff[kind].map(pathText) })),
    ...PAIRS.map((kind) => ({
      kind,
      lines: diff[kind].map((pair) => t("diff.pair", { from: pathText(pair.from), to: pathText(pair.to) })),
    })),
  ].filter(({ lines }) => lines.length > 0);
  if (lists.length === 0) return <p class={styles.none}>{t("diff.none")}</p>;
  return (
    <dl class={styles.lists}>
      {lists.map(({ kind, lines }) => (
        <div key={kind} class={styles[kind]}>
          <dt>{t(`diff.${kind}`)}</dt>
          {lines.map((line) => (
            <dd key={line}>{line}</dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
