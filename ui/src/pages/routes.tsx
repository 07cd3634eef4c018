// Which routes are slow, busy or failing? Each leads to its slowest requests.
import type { JSX } from "preact";
import { useLive } from "../api/hooks";
import type { Route, Routes as Told } from "../api/answers";
import { link } from "../address";
import { Page, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { type Column, Table } from "../parts/table";
import { ago, bytes, count, micros, percent, rate } from "../text/format";

/** The page. */
export function Routes(): JSX.Element {
  const routes = useLive<Told>("routes", "v1/routes");
  return (
    <Page
      title="Routes"
      lead="Every route since the server started, the slowest first. A route leads to its slowest requests."
    >
      <Waiting asked={routes} what="the routes" />
      {routes.value && <RouteTable rows={slowestFirst(routes.value.routes)} />}
    </Page>
  );
}

/** Routes by their 99th percentile, from the largest. */
export function slowestFirst(routes: Route[]): Route[] {
  return [...routes].sort((a, b) => (b.total?.p99_us ?? 0) - (a.total?.p99_us ?? 0));
}

/** Routes as a table. */
export function RouteTable(props: { rows: Route[]; isBrief?: boolean }): JSX.Element {
  const all = columns();
  const brief = ["route", "handler", "requests", "p50", "p99"];
  return (
    <Table
      label="Routes"
      rows={props.rows}
      keyOf={(row) => `${row.site} ${row.route} ${row.handler}`}
      empty="No request has been answered yet, so no route has times."
      columns={props.isBrief ? all.filter((one) => brief.includes(one.head)) : all}
    />
  );
}

function columns(): Column<Route>[] {
  const time = (head: string, of: (row: Route) => number | null | undefined): Column<Route> => ({
    head,
    isNumber: true,
    cell: (row) => micros(of(row)),
    by: of,
  });
  return [
    {
      head: "route",
      isMain: true,
      by: (row) => row.route,
      cell: (row) => (
        <a href={link("history", { site: row.site, route: row.route, sort: "slowest" })}>
          <Code text={row.route || "no route"} />{" "}
          {row.site !== "*" && (
            <span class="quiet">
              <Say text={row.site} />
            </span>
          )}
        </a>
      ),
    },
    {
      head: "access",
      isWide: true,
      cell: (row) =>
        row.route && (
          <a
            href={link("access", { site: row.site === "other" ? "" : row.site, q: row.route })}
            aria-label={`Who may ${row.route}`}
          >
            who may
          </a>
        ),
    },
    {
      head: "handler",
      isWide: true,
      by: (row) => row.handler,
      cell: (row) => <Say text={[row.handler, row.program].filter(Boolean).join(" ")} />,
    },
    {
      head: "requests",
      isNumber: true,
      cell: (row) => count(row.requests),
      by: (row) => row.requests,
    },
    {
      head: "per second",
      isNumber: true,
      isWide: true,
      cell: (row) => rate(row.rate_s),
      by: (row) => row.rate_s,
    },
    {
      head: "errors",
      isNumber: true,
      by: (row) => row.errors,
      cell: (row) =>
        row.errors > 0 ? (
          <a
            class="bad-text"
            href={link("history", { site: row.site, route: row.route, status: "5xx" })}
            title={percent(row.errors / Math.max(1, row.requests))}
          >
            {count(row.errors)}
          </a>
        ) : (
          "0"
        ),
    },
    { ...time("p50", (row) => row.total?.p50_us), isWide: true },
    { ...time("p90", (row) => row.total?.p90_us), isWide: true },
    time("p99", (row) => row.total?.p99_us),
    { ...time("worst", (row) => row.total?.max_us), isWide: true },
    { ...time("first byte p99", (row) => row.first_byte?.p99_us), isWide: true },
    { ...time("queue p99", (row) => row.queue?.p99_us), isWide: true },
    { ...time("start p99", (row) => row.start?.p99_us), isWide: true },
    { ...time("cpu p99", (row) => row.cpu?.p99_us), isWide: true },
    {
      head: "sent",
      isNumber: true,
      isWide: true,
      cell: (row) => bytes(row.bytes_out),
      by: (row) => row.bytes_out,
    },
    {
      head: "last",
      isWide: true,
      cell: (row) => ago(row.last_unix_ms),
      by: (row) => row.last_unix_ms,
    },
  ];
}
