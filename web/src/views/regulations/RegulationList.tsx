/** The regulations as they are valid on a day, found by letters of their names or codes. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { mayOpen } from "../../state/session";
import { api } from "../../api/client";
import { Field } from "../../parts/Field";
import { Segmented } from "../../parts/Segmented";
import { Empty, Loaded } from "../../parts/States";
import { BookGroups } from "./BookGroups";
import { Pages } from "./Pages";
import { address, asOfQuery, LIST_PAGE } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

export function RegulationList() {
  const { asOf, offset, find, order } = address.read();
  const page = useResource(
    (signal) =>
      api.get("/regulations", { query: { limit: LIST_PAGE, offset, name: find, order, ...asOfQuery(asOf) }, signal }),
    [asOf, offset, find, order],
  );
  return (
    <>
      <div class={styles.controls}>
        <Field
          type="search"
          label={t("list.find")}
          hint={t("list.findHint")}
          value={find}
          autocomplete="off"
          onInput={(value) => address.set({ find: value, offset: 0 }, { replace: true })}
        />
        <Segmented
          label={t("list.order")}
          value={order}
          choices={(["name", "code"] as const).map((value) => ({ value, text: t(`list.by.${value}`) }))}
          onChange={(value) => address.set({ order: value, offset: 0 })}
        />
      </div>
      <Loaded resource={page} lines={8}>
        {({ regulations, total }) =>
          regulations.length === 0 ? (
            <Nothing />
          ) : (
            <>
              <p role="status">{t("list.count", { n: total })}</p>
              <BookGroups rows={regulations} />
              <Pages total={total} size={LIST_PAGE} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Nothing() {
  const { asOf, find } = address.read();
  if (find)
    return (
      <Empty title={t("list.notFound", { name: find })} text={t("list.notFoundHelp")}>
        <a href={address.link({ find: "", offset: 0 })}>{t("list.all")}</a>
      </Empty>
    );
  return (
    <Empty title={t("list.none")} text={t(asOf ? "list.noneThen" : "list.noneHelp")}>
      {asOf ? (
        <a href={address.link({ asOf: "", offset: 0 })}>{t("list.today")}</a>
      ) : (
        mayOpen("documents") && <a href={href("documents")}>{t("list.documents")}</a>
      )}
    </Empty>
  );
}
