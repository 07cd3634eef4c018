// What is being done now, for whom, for how long? One row for each request under way.
import type { JSX } from "preact";
import { useLive } from "../api/hooks";
import type { Running as Told } from "../api/answers";
import { link } from "../address";
import { Page, Waiting } from "../parts/page";
import { Status } from "../parts/request";
import { Code, Say } from "../parts/say";
import { Table } from "../parts/table";
import { bytes, many, micros } from "../text/format";
import { stateWords, who } from "../text/words";
import { pathOf } from "./request";

/** Rows: what a screen can use, and a browser can draw each second. */
const ROWS_MAX = 200;

/** The page. */
export function Running(): JSX.Element {
  const live = useLive<Told>(`running?limit=${ROWS_MAX}`, `v1/running?limit=${ROWS_MAX}`);
  const rows = live.value?.requests ?? [];
  return (
    <Page
      title="Running"
      lead={
        live.value &&
        `${many(rows.length, "request")} under way, the oldest first${live.value.more ? "; there are more" : ""}.`
      }
    >
      <Waiting asked={live} what="what is running" />
      {live.value && (
        <Table
          label="Running requests"
          rows={rows}
          keyOf={(row) => row.id}
          empty="Nothing is running right now: every request so far has been answered."
          sort="-for"
          columns={[
            {
              head: "for",
              isNumber: true,
              by: (row) => row.age_us,
              cell: (row) => micros(row.age_us),
            },
            {
              head: "state",
              by: (row) => row.state,
              cell: (row) => <Say text={stateWords(row.state)} />,
            },
            {
              head: "request",
              isMain: true,
              by: (row) => row.target,
              cell: (row) => (
                <a class="target" href={link("watch", { path: pathOf(row.target ?? "") })}>
                  <span class="method">
                    <Say text={row.method} />
                  </span>{" "}
                  <Code text={row.target} />
                </a>
              ),
            },
            {
              head: "client",
              doesWrap: true,
              by: (row) => who(row),
              cell: (row) => (
                <a href={link("history", { client: row.client })}>
                  <Say text={who(row)} />
                </a>
              ),
            },
            {
              head: "status",
              isWide: true,
              by: (row) => row.status,
              cell: (row) => <Status of={row.status} />,
            },
            {
              head: "worker",
              isNumber: true,
              isWide: true,
              by: (row) => row.worker_pid,
              cell: (row) => row.worker_pid ?? "–",
            },
            {
              head: "handler",
              isWide: true,
              by: (row) => row.handler,
              cell: (row) => <Say text={row.handler} />,
            },
            {
              head: "site",
              isWide: true,
              by: (row) => row.site,
              cell: (row) => <Say text={row.site} />,
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
              by: (row) => row.body_bytes_out,
              cell: (row) => bytes(row.body_bytes_out),
            },
            { head: "id", isWide: true, cell: (row) => <Code text={row.id} /> },
          ]}
        />
      )}
    </Page>
  );
}
