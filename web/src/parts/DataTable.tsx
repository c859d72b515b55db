/** A table of facts. On a narrow screen each row is a block, and every cell says what it is. */
import type { ComponentChildren } from "preact";
import styles from "./DataTable.module.css";

export interface Column<Row> {
  title: string;
  render: (row: Row) => ComponentChildren;
  /** Numbers are aligned to the right. */
  number?: boolean;
}

interface Props<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string | number;
}

/** The first column names the row. */
export function DataTable<Row>({ label, columns, rows, keyOf }: Props<Row>) {
  return (
    <table class={styles.table} aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" class={column.number ? styles.number : undefined}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column, index) => {
              const Cell = index === 0 ? "th" : "td";
              return (
                <Cell
                  key={column.title}
                  scope={index === 0 ? "row" : undefined}
                  data-title={column.title}
                  class={column.number ? styles.number : undefined}
                >
                  {column.render(row)}
                </Cell>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
