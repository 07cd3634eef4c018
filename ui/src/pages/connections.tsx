// Who is connected, and how good is the line?
import type { JSX } from "preact";
import { useLive } from "../api/hooks";
import type { Connections as Told } from "../api/answers";
import { link } from "../address";
import { Page, Waiting } from "../parts/page";
import { Say } from "../parts/say";
import { Table } from "../parts/table";
import { ago, bytes, count, many, micros } from "../text/format";

/** Rows: what a screen can use, and a browser can draw each second. */
const ROWS_MAX = 200;

/** The page. */
export function Connections(): JSX.Element {
  const live = useLive<Told>(`connections?limit=${ROWS_MAX}`, `v1/connections?limit=${ROWS_MAX}`);
  const rows = live.value?.connections ?? [];
  return (
    <Page
      title="Connections"
      lead={
        live.value &&
        `${many(rows.length, "connection")} open${live.value.more ? ", and more than are shown" : ""}.`
      }
    >
      <Waiting asked={live} what="the connections" />
      {live.value && (
        <Table
          label="Connections"
          rows={rows}
          keyOf={(row) => row.number}
          empty="Nobody is connected."
          columns={[
            {
              head: "client",
              isMain: true,
              by: (row) => row.client,
              cell: (row) => (
                <a href={link("history", { client: row.client })}>
                  <Say text={row.client || "local socket"} />
                  {row.client_port ? <span class="quiet"> port {row.client_port}</span> : null}
                </a>
              ),
            },
            { head: "state", by: (row) => row.state, cell: (row) => <Say text={row.state} /> },
            {
              head: "protocol",
              by: (row) => row.protocol,
              cell: (row) => <Say text={row.protocol} />,
            },
            {
              head: "TLS",
              isWide: true,
              by: (row) => row.tls_version,
              cell: (row) => (
                <span title={row.tls_suite ?? undefined}>
                  <Say text={row.tls_version || "clear"} />
                </span>
              ),
            },
            {
              head: "listener",
              isWide: true,
              by: (row) => row.listener,
              cell: (row) => <Say text={row.listener || "local socket"} />,
            },
            {
              head: "opened",
              by: (row) => row.opened_unix_ms,
              cell: (row) => ago(row.opened_unix_ms),
            },
            {
              head: "requests",
              isNumber: true,
              by: (row) => row.requests,
              cell: (row) => count(row.requests),
            },
            {
              head: "received",
              isNumber: true,
              isWide: true,
              by: (row) => row.bytes_in,
              cell: (row) => bytes(row.bytes_in),
            },
            {
              head: "sent",
              isNumber: true,
              isWide: true,
              by: (row) => row.bytes_out,
              cell: (row) => bytes(row.bytes_out),
            },
            {
              head: "round trip",
              isNumber: true,
              isWide: true,
              by: (row) => row.rtt_us,
              cell: (row) => micros(row.rtt_us || null),
            },
            {
              head: "sent again",
              isNumber: true,
              isWide: true,
              by: (row) => row.retransmits,
              cell: (row) => count(row.retransmits),
            },
          ]}
        />
      )}
    </Page>
  );
}
