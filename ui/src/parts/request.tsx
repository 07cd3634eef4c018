// How a request shows in a table and where it leads.
import type { JSX } from "preact";
import type { Request } from "../api/answers";
import { link } from "../address";
import { Split } from "../chart/waterfall";
import { bytes, clock, micros } from "../text/format";
import { outcomeWords, statusClass, who } from "../text/words";
import { Code, Say } from "./say";
import { type Column, Table } from "./table";

/** A status code with its colour; a dash while there is none. */
export function Status(props: { of: number | null | undefined }): JSX.Element {
  return <span class={`status ${statusClass(props.of)}`}>{props.of || "–"}</span>;
}

/** Method and target, leading to the request's page. */
export function Target(props: { of: Request }): JSX.Element {
  const { of } = props;
  return (
    <a class="target" href={link("history", {}, of.id)}>
      <span class="method">
        <Say text={of.method} />
      </span>{" "}
      <Code text={of.target} />
    </a>
  );
}

/** Finished requests as a table. */
export function Requests(props: {
  label: string;
  rows: Request[];
  empty: string;
  /** Fewer columns, for a panel of a page about something else. */
  isBrief?: boolean;
}): JSX.Element {
  const longest_us = Math.max(0, ...props.rows.map((row) => row.total_us ?? 0));
  const columns: Column<Request>[] = [
    { head: "when", cell: (row) => clock(row.started_unix_ms), by: (row) => row.started_unix_ms },
    { head: "request", isMain: true, cell: (row) => <Target of={row} />, by: (row) => row.target },
    { head: "status", cell: (row) => <Status of={row.status} />, by: (row) => row.status },
    {
      head: "client",
      isWide: true,
      cell: (row) => <Say text={who(row)} />,
      by: (row) => who(row),
    },
    {
      head: "handler",
      isWide: true,
      cell: (row) => <Say text={row.handler} />,
      by: (row) => row.handler,
    },
    {
      head: "sent",
      isNumber: true,
      isWide: true,
      cell: (row) => bytes(row.body_bytes_out),
      by: (row) => row.body_bytes_out,
    },
    {
      head: "time",
      isNumber: true,
      cell: (row) => micros(row.total_us),
      by: (row) => row.total_us,
    },
    {
      head: "where it went",
      isWide: true,
      cell: (row) => <Split request={row} longest_us={longest_us} />,
    },
    { head: "verdict", isWide: true, doesWrap: true, cell: (row) => <Say text={remark(row)} /> },
  ];
  const brief = ["when", "request", "status", "time", "where it went", "verdict"];
  return (
    <Table
      label={props.label}
      rows={props.rows}
      keyOf={(row) => row.id}
      empty={props.empty}
      columns={props.isBrief ? columns.filter((one) => brief.includes(one.head)) : columns}
      classOf={(row) => (statusClass(row.status) === "server" ? "bad" : "")}
    />
  );
}

/** What is worth saying about a request in one line. */
export function remark(row: Request): string {
  if (row.verdict) return row.verdict;
  if (row.reason) return row.reason;
  return row.outcome && row.outcome !== "complete" ? outcomeWords(row.outcome) : "";
}
