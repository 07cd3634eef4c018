// The table of every page: heads that sort, columns that give way on a narrow screen, and words in
// place of rows where there are none.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

/** One column. */
export interface Column<R> {
  head: string;
  cell(row: R): ComponentChildren;
  /** What to sort by; a column without it does not sort. */
  by?(row: R): number | string | null | undefined;
  /** Numbers stand to the right. */
  isNumber?: boolean;
  /** Left out on a narrow screen. */
  isWide?: boolean;
  /** The column that takes what room is left. */
  isMain?: boolean;
  /** Sentences, which may take more than one line. */
  doesWrap?: boolean;
}

/** Rows, columns and what is said when there is no row. */
export interface TableProps<R> {
  label: string;
  columns: Column<R>[];
  rows: R[];
  keyOf(row: R): string | number;
  empty: ComponentChildren;
  /** Column to sort by at first, by its head; `-` before it is from the largest. */
  sort?: string;
  classOf?(row: R): string;
}

/** Draws the table. */
export function Table<R>(props: TableProps<R>): JSX.Element {
  const [sort, setSort] = useState(props.sort ?? "");
  if (props.rows.length === 0) return <p class="empty">{props.empty}</p>;
  const rows = sorted(props.rows, props.columns, sort);
  return (
    <div class="scroll" role="region" aria-label={props.label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <Head key={column.head} column={column} sort={sort} onSort={setSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={props.keyOf(row)} class={props.classOf?.(row)}>
              {props.columns.map((column) => (
                <td key={column.head} class={classes(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head<R>(props: {
  column: Column<R>;
  sort: string;
  onSort(sort: string): void;
}): JSX.Element {
  const { column, sort } = props;
  const isUp = sort === column.head;
  const isDown = sort === `-${column.head}`;
  // Numbers are most often wanted from the largest.
  const next = isDown
    ? column.head
    : isUp
      ? `-${column.head}`
      : column.isNumber
        ? `-${column.head}`
        : column.head;
  return (
    <th
      scope="col"
      class={classes(column)}
      aria-sort={isUp ? "ascending" : isDown ? "descending" : undefined}
    >
      {column.by ? (
        <button type="button" class="sort" onClick={() => props.onSort(next)}>
          {column.head}
          <span aria-hidden="true">{isUp ? " ↑" : isDown ? " ↓" : ""}</span>
        </button>
      ) : (
        column.head
      )}
    </th>
  );
}

/** Rows by the column that `sort` names; as they came when it names none. */
export function sorted<R>(rows: R[], columns: Column<R>[], sort: string): R[] {
  const isDown = sort.startsWith("-");
  const by = columns.find((column) => column.head === sort.replace(/^-/, ""))?.by;
  if (!by) return rows;
  const order = (a: R, b: R): number => {
    const [x, y] = [by(a) ?? -Infinity, by(b) ?? -Infinity];
    const least =
      typeof x === "string" && typeof y === "string" ? x.localeCompare(y) : Number(x) - Number(y);
    return isDown ? -least : least;
  };
  return [...rows].sort(order);
}

function classes<R>(column: Column<R>): string | undefined {
  const all = [
    column.isNumber && "number",
    column.isWide && "wide",
    column.isMain && "main",
    column.doesWrap && "wraps",
  ];
  return all.filter(Boolean).join(" ") || undefined;
}
