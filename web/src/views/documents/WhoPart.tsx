/** Who can see a document, and through which branch of the categories. */
import { pathText } from "../../text/path-text";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { caller, mayWholeTreeAs } from "../../state/session";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Badge } from "../../parts/Badge";
import { Empty, Loaded } from "../../parts/States";
import { t as common } from "../../text/common";
import { t } from "./text";
import styles from "./WhoPart.module.css";

type Visibility = components["schemas"]["VisibilityShape"];
type Sight = Visibility["sights"][number];

export function WhoPart({ id }: { id: string }) {
  const allowed = mayWholeTreeAs("admin");
  const who = useResource(
    allowed ? (signal) => api.get("/documents/{document_id}/who", { path: { document_id: id }, signal }) : null,
    [id, allowed],
  );
  if (!allowed) return <Empty title={t("who.notAllowed")} text={mine()} />;
  return <Loaded resource={who}>{(visibility) => <Sights visibility={visibility} />}</Loaded>;
}

function mine(): string {
  if (caller.value?.role === "public") return t("who.everybody");
  const scope = caller.value?.scope;
  return scope ? t("who.mine", { paths: scope.join(", ") }) : t("who.mineWhole");
}

function Sights({ visibility }: { visibility: Visibility }) {
  const { sights, category } = visibility;
  const agents = sights.filter((sight) => sight.kind === "agent");
  const keys = sights.filter((sight) => sight.kind === "key");
  return (
    <div class={styles.who}>
      <p>
        {category.length > 0 ? t("who.category", { path: pathText(category) }) : t("who.noCategory")} {t("who.rule")}
      </p>
      {visibility.without_keys && <p class={styles.open}>{t("who.withoutKeys")}</p>}
      {sights.some((sight) => sight.kind === "public") && <p class={styles.open}>{t("who.everybody")}</p>}
      {!visibility.without_keys && <Group title={t("who.keys", { n: keys.length })} sights={keys} />}
      <Group title={t("who.agents", { n: agents.length })} sights={agents} />
    </div>
  );
}

function Group({ title, sights }: { title: string; sights: readonly Sight[] }) {
  if (sights.length === 0) return <p class={styles.none}>{title}</p>;
  return (
    <section>
      <h2>{title}</h2>
      <table class={styles.table}>
        <thead>
          <tr>
            <th scope="col">{t("who.name")}</th>
            <th scope="col">{t("who.why")}</th>
          </tr>
        </thead>
        <tbody>
          {sights.map((sight) => (
            <tr key={`${sight.kind} ${sight.id || sight.name}`}>
              <th scope="row">
                {sight.kind === "agent" ? <a href={href("agents", { path: [sight.id] })}>{sight.name}</a> : sight.name}{" "}
                {sight.role && (
                  <Badge>{sight.role === "public" ? t("who.public") : common(`role.${sight.role}`)}</Badge>
                )}
              </th>
              <td>{sight.branch ? t("who.branch", { path: pathText(sight.branch) }) : t("who.whole")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
