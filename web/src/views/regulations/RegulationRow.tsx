/** A regulation in the list: its name, its code, and what it has; its chapters and articles are listed on demand. */
import { useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Loaded } from "../../parts/States";
import { Divisions } from "./OutlineLinks";
import { address, asOfQuery, divisionsOf, linkToPlace } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

type Row = components["schemas"]["RegulationShape"];

export function RegulationRow({ row }: { row: Row }) {
  const { asOf } = address.read();
  const [open, setOpen] = useState(false);
  const { name, code, articles, appendices, addenda } = row;
  return (
    <li>
      <p class={styles.heading}>
        <a href={linkToPlace(name, "", asOf)} lang="ko">
          {name}
        </a>
        <span class={styles.small}>{code}</span>
      </p>
      <details class={styles.small} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="quiet">{`${name}: `}</span>
          {[
            t("list.articles", { n: articles }),
            appendices > 0 && t("list.appendices", { n: appendices }),
            addenda > 0 && t("list.addenda", { n: addenda }),
          ]
            .filter(Boolean)
            .join(" · ")}
        </summary>
        {open && <Outline name={name} />}
      </details>
    </li>
  );
}

function Outline({ name }: { name: string }) {
  const { asOf } = address.read();
  const outline = useResource(
    (signal) => api.get("/regulations/outline", { query: { regulation: name, ...asOfQuery(asOf) }, signal }),
    [name, asOf],
  );
  return (
    <Loaded resource={outline} lines={2}>
      {({ provisions }) => <Divisions of={name} divisions={divisionsOf(provisions)} />}
    </Loaded>
  );
}
