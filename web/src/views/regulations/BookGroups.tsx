/** Regulations below the headings of their book (편, 장), folded; a search opens them. */
import { useState } from "preact/hooks";
import type { components } from "../../api/schema";
import { RegulationRow } from "./RegulationRow";
import { address } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

interface Props {
  rows: readonly components["schemas"]["RegulationShape"][];
  /** How many headings are above. */
  depth?: number;
}

export function BookGroups({ rows, depth = 0 }: Props) {
  const alone = rows.filter(({ headings }) => headings.length <= depth);
  const names = [...new Set(rows.map(({ headings }) => headings[depth] ?? ""))].filter(Boolean);
  names.sort(new Intl.Collator("ko", { numeric: true }).compare);
  return (
    <>
      {names.map((name) => (
        <Group key={name} name={name} rows={rows.filter(({ headings }) => headings[depth] === name)} depth={depth} />
      ))}
      {alone.length > 0 && (
        <ul class={styles.list} aria-label={t("list.title")}>
          {alone.map((row) => (
            <RegulationRow key={row.document_id + row.name} row={row} />
          ))}
        </ul>
      )}
    </>
  );
}

function Group({ name, rows, depth }: Required<Props> & { name: string }) {
  const isFound = address.read().find !== "";
  const [open, setOpen] = useState(false);
  return (
    <details
      class={styles.group}
      open={open || isFound}
      onToggle={(event) => !isFound && setOpen(event.currentTarget.open)}
    >
      <summary>
        <span lang="ko">{name}</span> <span class={styles.small}>{t("list.count", { n: rows.length })}</span>
      </summary>
      {(open || isFound) && <BookGroups rows={rows} depth={depth + 1} />}
    </details>
  );
}
