/** A table of what documents and answers say. With header rows, the first cell of each row is its header. */
import type { ComponentChildren } from "preact";
import { t } from "../text/common";
import styles from "./CellTable.module.css";

interface Props {
  head: readonly ComponentChildren[][];
  rows: readonly ComponentChildren[][];
}

export function CellTable({ head, rows }: Props) {
  const width = Math.max(...[...head, ...rows].map((row) => row.length));
  // A short row was one with joined cells: its last cell takes the rest.
  const columns = (row: readonly ComponentChildren[], column: number) =>
    row.length < width && column === row.length - 1 ? width - column : undefined;
  return (
    <div class={styles.table} tabIndex={0} role="group" aria-label={t("parts.table")}>
      <table>
        {head.length > 0 && (
          <thead>
            {head.map((row, at) => (
              <tr key={at}>
                {row.map((cell, column) => (
                  <th key={column} scope="col" colSpan={columns(row, column)}>
                    {cell}
                  </th>
                ))}
              </tr>
            ))}
          </thead>
        )}
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) =>
                head.length > 0 && column === 0 && row.length > 1 ? (
                  <th key={column} scope="row">
                    {cell}
                  </th>
                ) : (
                  <td key={column} colSpan={columns(row, column)}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
