// Is everything well, and where should I look? Tiles lead to the page that tells more; below them
// the slowest routes and requests, so that a slow script is found in two clicks.
import type { ComponentChildren, JSX } from "preact";
import { useLive } from "../api/hooks";
import type { Alert, History, Overview, Routes, Series } from "../api/answers";
import { link } from "../address";
import { column } from "../chart/series";
import { Notice, Page, Panel, Waiting } from "../parts/page";
import { Requests } from "../parts/request";
import { Say } from "../parts/say";
import { Tile } from "../parts/tile";
import {
  ago,
  bytes,
  bytesRate,
  cores,
  count,
  many,
  micros,
  percent,
  rate,
  seconds,
} from "../text/format";
import { RouteTable, slowestFirst } from "./routes";

/** The slowest that are shown, and how far back requests are looked for. */
const ROUTES_SHOWN = 6;
const SLOWEST = "sort=slowest&limit=8&within=10m";

/** The page. */
export function OverviewPage(): JSX.Element {
  const live = useLive<Overview>("overview", "v1/overview");
  const now = live.value;
  return (
    <Page title="Overview" lead={now && <Lead of={now} />}>
      <Waiting
        asked={live.error !== null && now ? { value: now, error: null } : live}
        what="the overview"
      />
      {now && (
        <>
          <Alerts of={now.alerts ?? []} />
          <Tiles of={now} />
        </>
      )}
      <Slowest />
    </Page>
  );
}

function Lead(props: { of: Overview }): JSX.Element {
  const { of } = props;
  return (
    <>
      <Say text={of.hostname} /> · hob <Say text={of.version} /> · up {seconds(of.uptime_s)} ·
      config generation {count(of.generation)}
    </>
  );
}

function Alerts(props: { of: Alert[] }): JSX.Element {
  if (props.of.length === 0) {
    return (
      <Notice level="good">All is well: nothing is near its limit and nothing is failing.</Notice>
    );
  }
  return (
    <ul class="alerts">
      {props.of.map((alert) => (
        <li key={alert.text}>
          <Notice level={alert.level}>
            <Say text={alert.text} />
            {alert.since_unix_ms ? (
              <span class="quiet"> since {ago(alert.since_unix_ms)}</span>
            ) : null}
            {alert.page ? (
              <>
                {" "}
                <a href={link(alert.page)}>
                  more<span class="unseen"> about this alert</span>
                </a>
              </>
            ) : null}
          </Notice>
        </li>
      ))}
    </ul>
  );
}

const NOTHING_YET: Series = { step_s: 1, from_unix_s: 0, columns: [], rows: [] };

function Tiles(props: { of: Overview }): JSX.Element {
  const { of } = props;
  const recent = of.seconds ?? NOTHING_YET;
  const at = (name: string): (number | null)[] => column(recent, name);
  return (
    <div class="tiles">
      <Tile
        name="Requests"
        value={rate(of.rate?.requests_s)}
        more={`${count(of.running)} running now`}
        href={link("activity", { range: "5m" })}
        values={at("requests")}
        topMin={5}
      />
      <Tile
        name="Errors"
        value={rate(of.rate?.errors_s)}
        more={share(of.rate?.errors_s, of.rate?.requests_s)}
        href={link("history", { status: "5xx" })}
        values={at("errors")}
        colour="line-bad"
        topMin={1}
        level={(of.rate?.errors_s ?? 0) > 0 ? "bad" : undefined}
      />
      <Tile
        name="Slow end (p99)"
        value={micros(of.latency?.p99_us)}
        more={
          of.latency?.count
            ? `half within ${micros(of.latency.p50_us)}, worst ${micros(of.latency.max_us)}`
            : "no request in the last minute"
        }
        href={link("routes")}
        values={at("p99_us")}
        colour="line-4"
      />
      <WorkerTiles of={of} busy={at("busy_workers")} wait={at("queue_wait_us")} />
      <Tile
        name="Running"
        value={count(of.running)}
        more={`on ${count(of.connections_open)} connections`}
        href={link("running")}
        values={at("running")}
        colour="line-2"
        topMin={2}
      />
      <MachineTiles of={of} at={at} />
    </div>
  );
}

function WorkerTiles(props: {
  of: Overview;
  busy: (number | null)[];
  wait: (number | null)[];
}): JSX.Element {
  const workers = props.of.workers ?? {};
  const starting = workers.starting ? `, ${count(workers.starting)} starting` : "";
  const isFull = (workers.max ?? 0) > 0 && (workers.busy ?? 0) >= (workers.max ?? 0);
  return (
    <>
      <Tile
        name="Workers busy"
        value={`${count(workers.busy)} of ${count(workers.max)}`}
        more={`${count(workers.idle)} idle${starting}`}
        href={link("programs")}
        values={props.busy}
        colour="line-2"
        topMin={workers.max ?? 1}
        level={isFull ? "warning" : undefined}
      />
      <Tile
        name="Queue"
        value={`${count(workers.queued)} waiting`}
        more={`p99 of waits ${micros(workers.queue_wait_p99_us)}`}
        href={link("programs")}
        values={props.wait}
        colour="line-3"
        level={(workers.queued ?? 0) > 0 ? "warning" : undefined}
      />
    </>
  );
}

function MachineTiles(props: { of: Overview; at(name: string): (number | null)[] }): JSX.Element {
  const { of, at } = props;
  const total = (a: string, b: string): (number | null)[] => {
    const [one, other] = [at(a), at(b)];
    return one.map((value, index) => (value === null ? null : value + (other[index] ?? 0)));
  };
  const cpu = of.cpu ?? {};
  const memory = of.memory ?? {};
  const sum = (memory.server_bytes ?? 0) + (memory.programs_bytes ?? 0);
  return (
    <>
      <Tile
        name="Processors"
        value={`${cores((cpu.server_cores ?? 0) + (cpu.programs_cores ?? 0))} of ${cpu.machine_cores ?? "–"}`}
        more={`server ${cores(cpu.server_cores)}, programs ${cores(cpu.programs_cores)} cores`}
        href={link("activity", { range: "15m" })}
        values={total("server_cpu_us", "programs_cpu_us")}
        colour="line-5"
      />
      <Tile
        name="Memory"
        value={bytes(sum)}
        more={`server ${bytes(memory.server_bytes)}, programs ${bytes(memory.programs_bytes)}`}
        href={link("environment")}
        values={total("server_memory_bytes", "programs_memory_bytes")}
        colour="line-5"
      />
      <Tile
        name="Cache"
        value={of.cache?.hit_ratio == null ? "no use yet" : `${percent(of.cache.hit_ratio)} hits`}
        more={`${many(of.cache?.entries, "file")}, ${bytes(of.cache?.bytes)} of ${bytes(of.cache?.bytes_max)}`}
        href={link("cache")}
      />
      <Tile
        name="Sent"
        value={bytesRate(of.rate?.bytes_out_s)}
        more={`received ${bytesRate(of.rate?.bytes_in_s)}`}
        href={link("activity", { range: "5m" })}
        values={at("bytes_out")}
      />
    </>
  );
}

function Slowest(): JSX.Element {
  const routes = useLive<Routes>(`routes?limit=${ROUTES_SHOWN}`, `v1/routes?limit=${ROUTES_SHOWN}`);
  const slow = useLive<History>(`history?${SLOWEST}`, `v1/history?${SLOWEST}`);
  const more = (href: string, what: string): ComponentChildren => <a href={href}>{what}</a>;
  return (
    <>
      <Panel title="Slowest routes" tools={more(link("routes"), "all routes")}>
        <Waiting asked={routes} what="the routes" />
        {routes.value && <RouteTable rows={slowestFirst(routes.value.routes)} isBrief />}
      </Panel>
      <Panel
        title="Slowest requests of late"
        tools={more(link("history", { sort: "slowest" }), "slowest of all kept")}
      >
        <Waiting asked={slow} what="the slowest requests" />
        {slow.value && (
          <Requests
            label="Slowest requests of late"
            rows={slow.value.requests}
            empty="No request has finished in the last ten minutes."
            isBrief
          />
        )}
      </Panel>
    </>
  );
}

function share(part: number | undefined, whole: number | undefined): string {
  if (!whole) return "no requests";
  return part ? `${percent(part / whole)} of requests` : "no request failed";
}
