/** The regulations by name, as they are valid on a day. */
import { useResource } from "../../app/resource";
import { href } from "../../app/router";
import { api } from "../../api/client";
import { DataTable } from "../../parts/DataTable";
import { Empty, Loaded } from "../../parts/States";
import { formatNumber } from "../../text/texts";
import { Pages } from "./Pages";
import { address, asOfQuery, linkToRegulation, PAGE } from "./state";
import { t } from "./text";

export function RegulationList() {
  const { asOf, offset } = address.read();
  const page = useResource(
    (signal) => api.get("/regulations", { query: { limit: PAGE, offset, ...asOfQuery(asOf) }, signal }),
    [asOf, offset],
  );
  return (
    <Loaded resource={page} lines={8}>
      {({ regulations, total }) =>
        regulations.length === 0 ? (
          <Empty title={t("list.none")} text={t(asOf ? "list.noneThen" : "list.noneHelp")}>
            {asOf ? (
              <a href={address.link({ asOf: "", offset: 0 })}>{t("list.today")}</a>
            ) : (
              <a href={href("documents")}>{t("list.documents")}</a>
            )}
          </Empty>
        ) : (
          <>
            <DataTable
              label={t("list.title")}
              rows={regulations}
              keyOf={(row) => row.document_id + row.name}
              columns={[
                {
                  title: t("list.name"),
                  render: (row) => (
                    <a href={linkToRegulation(row.name, asOf)} lang="ko">
                      {row.name}
                    </a>
                  ),
                },
                { title: t("list.code"), render: (row) => row.code || "–" },
                { title: t("list.articles"), number: true, render: (row) => formatNumber(row.articles) },
                { title: t("list.appendices"), number: true, render: (row) => formatNumber(row.appendices) },
                { title: t("list.addenda"), number: true, render: (row) => formatNumber(row.addenda) },
              ]}
            />
            <Pages total={total} />
          </>
        )
      }
    </Loaded>
  );
}
