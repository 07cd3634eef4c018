// What was it like over the last minutes, days, weeks? Six charts over one stretch of time, which
// stands in the address. Dragging, keys and buttons change it; a table says the same in words.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Asked, useAsk, useLive } from "../api/hooks";
import type { Series } from "../api/answers";
import { type Query, link } from "../address";
import { Graph, type GraphLine } from "../chart/graph";
import {
  RANGES,
  type Stretch,
  bounded,
  column,
  joined,
  moved,
  perSecond,
  stepFor,
  times,
  zoomed,
} from "../chart/series";
import { Notice, Page, Panel, Waiting } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { go, place } from "../route";
import { bytes, bytesRate, clock, cores, day, micros, rate, seconds, short } from "../text/format";

/** About as many points as a chart is wide. */
const POINTS = 480;
/** Rows of the table: few enough to read. */
const TABLE_ROWS = 30;
/** Seconds that a table stands still while the charts move on. */
const TABLE_S = 30;

/** What the address says: the last so many seconds, or a fixed stretch. */
export function stretchOf(query: Query, now: number): { stretch: Stretch; range: string | null } {
  const from = Number(query["from"]);
  const to = Number(query["to"]);
  if (from > 0 && to > from) return { stretch: bounded({ from, to }, now), range: null };
  const range = RANGES.find(([word]) => word === query["range"]) ?? RANGES[3]!;
  return { stretch: bounded({ from: now - range[1], to: now }, now), range: range[0] };
}

/** The page. */
export function Activity(): JSX.Element {
  const { asked, series, stretch, range } = useFollowed(place.value.query);
  const choose = (next: Stretch): void => {
    const kept = bounded(next, nowS());
    go(link("activity", { from: kept.from, to: kept.to }));
  };
  const step = series?.step_s ?? stepFor(stretch, POINTS);
  return (
    <Page title="Activity" lead={`${said(stretch)}, a point every ${seconds(step)}.`}>
      <Ranges range={range} stretch={stretch} onChoose={choose} />
      <Waiting asked={series ? { value: series, error: null } : asked} what="the activity" />
      {asked.error !== null && series && <Notice level="warning">{asked.error}</Notice>}
      {series && <Charts of={series} stretch={stretch} onChoose={choose} />}
      <AsTable stretch={stretch} />
    </Page>
  );
}

interface Followed {
  asked: Asked<Series>;
  series: Series | null;
  stretch: Stretch;
  range: string | null;
}

/**
 * The rows of the stretch that the address names, asked for once. Where it ends now, newer rows are
 * pushed, and it moves on with them.
 */
function useFollowed(query: Query): Followed {
  const key = JSON.stringify(query);
  const [now, setNow] = useState(nowS);
  useEffect(() => setNow(nowS()), [key]);
  const { stretch: first, range } = useMemo(() => stretchOf(query, now), [key, now]);
  const length = first.to - first.from;
  const step = stepFor(first, POINTS);
  const asked = useAsk<Series>(`v1/activity?from=${first.from}&to=${first.to}&step=${step}`);
  const [series, setSeries] = useState<Series | null>(null);
  useEffect(() => setSeries(asked.value), [asked.value]);
  const kept = series?.step_s;
  const isMoving = range !== null && kept !== undefined;
  const every = Math.min(kept ?? 1, 60);
  const topic = isMoving ? `activity?step=${kept}&every=${every}` : null;
  const pushed = useLive<Series>(topic, null);
  const newest = pushed.value;
  useEffect(() => {
    if (!isMoving || newest === null || series === null) return;
    if (newest.step_s !== series.step_s) return;
    const next = joined(series, newest, endOf(newest) - length);
    // With rows missing in between, as after a while out of sight, all is asked for again: by the
    // server's clock, in case the one here is another.
    if (next === null) setNow(endOf(newest));
    else setSeries(next);
  }, [newest]);
  const to = isMoving && series !== null ? Math.max(first.to, endOf(series)) : first.to;
  return {
    asked: { ...asked, error: asked.error ?? pushed.error },
    series,
    stretch: { from: to - length, to },
    range,
  };
}

function endOf(series: Series): number {
  return series.from_unix_s + series.rows.length * series.step_s;
}

function Ranges(props: {
  range: string | null;
  stretch: Stretch;
  onChoose(stretch: Stretch): void;
}): JSX.Element {
  const { stretch, onChoose } = props;
  return (
    <div class="ranges" role="toolbar" aria-label="Stretch of time">
      <span class="group">
        {RANGES.map(([word, , name]) => (
          <button
            key={word}
            type="button"
            aria-pressed={word === props.range}
            title={`the last ${name}`}
            onClick={() => go(link("activity", { range: word }))}
          >
            {word}
          </button>
        ))}
      </span>
      <span class="group">
        <button type="button" onClick={() => onChoose(moved(stretch, -0.5, nowS()))}>
          <span aria-hidden="true">←</span>
          <span class="unseen">earlier</span>
        </button>
        <button type="button" onClick={() => onChoose(zoomed(stretch, 0.5, nowS()))}>
          <span aria-hidden="true">+</span>
          <span class="unseen">nearer</span>
        </button>
        <button type="button" onClick={() => onChoose(zoomed(stretch, 2, nowS()))}>
          <span aria-hidden="true">−</span>
          <span class="unseen">further</span>
        </button>
        <button type="button" onClick={() => onChoose(moved(stretch, 0.5, nowS()))}>
          <span aria-hidden="true">→</span>
          <span class="unseen">later</span>
        </button>
      </span>
      <a
        href={link("history", {
          since: stretch.from * 1000,
          until: stretch.to * 1000,
          sort: "slowest",
        })}
      >
        slowest requests of this time
      </a>
    </div>
  );
}

interface Chart {
  title: string;
  lines: GraphLine[];
  format(value: number | null): string;
  isBinary?: boolean;
}

function Charts(props: {
  of: Series;
  stretch: Stretch;
  onChoose(stretch: Stretch): void;
}): JSX.Element {
  const { of, stretch, onChoose } = props;
  const cursor = useSignal<number | null>(null);
  const at = useMemo(() => times(of), [of]);
  const charts = useMemo(() => chartsOf(of), [of]);
  const onKey = (event: KeyboardEvent): void => {
    const next = keyed(event.key, stretch);
    if (next === null) return;
    event.preventDefault();
    onChoose(next);
  };
  return (
    <div
      class="charts"
      role="application"
      aria-label="Charts. Left and right move in time, plus and minus zoom. The table below says the same."
      tabIndex={0}
      onKeyDown={onKey}
    >
      {charts.map((chart) => (
        <Graph
          key={chart.title}
          title={chart.title}
          times={at}
          lines={chart.lines}
          stretch={stretch}
          format={chart.format}
          isBinary={chart.isBinary === true}
          cursor={cursor}
          onChoose={onChoose}
        />
      ))}
      <p class="note">
        Drag over a chart to look nearer. Keys, once the charts have the focus: ← → move, + − zoom.
      </p>
    </div>
  );
}

function keyed(key: string, stretch: Stretch): Stretch | null {
  switch (key) {
    case "ArrowLeft":
      return moved(stretch, -0.25, nowS());
    case "ArrowRight":
      return moved(stretch, 0.25, nowS());
    case "+":
    case "=":
      return zoomed(stretch, 0.5, nowS());
    case "-":
      return zoomed(stretch, 2, nowS());
    default:
      return null;
  }
}

function chartsOf(of: Series): Chart[] {
  const one = (label: string, name: string, colour: string, isFilled = false): GraphLine => ({
    label,
    values: column(of, name),
    colour,
    isFilled,
  });
  const every = (label: string, name: string, colour: string, isFilled = false): GraphLine => ({
    label,
    values: perSecond(of, name),
    colour,
    isFilled,
  });
  const used = (label: string, name: string, colour: string): GraphLine => ({
    label,
    values: perSecond(of, name).map((value) => (value === null ? null : value / 1e6)),
    colour,
  });
  return [
    {
      title: "Requests",
      format: rate,
      lines: [
        every("requests", "requests", "--line-1", true),
        every("errors", "errors", "--line-bad"),
      ],
    },
    {
      title: "Time to answer",
      format: micros,
      lines: [
        one("p50", "p50_us", "--line-1"),
        one("p90", "p90_us", "--line-3"),
        one("p99", "p99_us", "--line-4"),
      ],
    },
    {
      title: "At once",
      format: short,
      lines: [
        one("running", "running", "--line-1"),
        one("busy workers", "busy_workers", "--line-2", true),
        one("connections", "connections", "--line-5"),
      ],
    },
    {
      title: "Wait for a worker",
      format: micros,
      lines: [one("queue", "queue_wait_us", "--line-3", true)],
    },
    {
      title: "Traffic",
      isBinary: true,
      format: bytesRate,
      lines: [
        every("sent", "bytes_out", "--line-1", true),
        every("received", "bytes_in", "--line-3"),
      ],
    },
    {
      title: "Processor cores",
      format: cores,
      lines: [
        used("server", "server_cpu_us", "--line-1"),
        used("programs", "programs_cpu_us", "--line-2"),
      ],
    },
    {
      title: "Memory",
      isBinary: true,
      format: bytes,
      lines: [
        one("server", "server_memory_bytes", "--line-1"),
        one("programs", "programs_memory_bytes", "--line-2"),
      ],
    },
  ];
}

function AsTable(props: { stretch: Stretch }): JSX.Element {
  const { stretch } = props;
  const [isOpen, setOpen] = useState(false);
  const step = stepFor(stretch, TABLE_ROWS);
  // Charts move each second; a table that is read may stand still for a while.
  const late = stretch.to % TABLE_S;
  const asked = useAsk<Series>(
    isOpen ? `v1/activity?from=${stretch.from - late}&to=${stretch.to - late}&step=${step}` : null,
  );
  return (
    <Panel
      title="The same as a table"
      tools={
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide" : "Show"}
        </button>
      }
    >
      {isOpen && <Waiting asked={asked} what="the table" />}
      {isOpen && asked.value && <SeriesTable of={asked.value} />}
    </Panel>
  );
}

function SeriesTable(props: { of: Series }): JSX.Element {
  const { of } = props;
  const moments = times(of);
  const rows = of.rows.flatMap((row, index) =>
    row === null ? [] : [{ index, at: moments[index]! }],
  );
  const number = (
    head: string,
    values: (number | null)[],
    format: (value: number | null) => string,
  ): Column<{ index: number; at: number }> => ({
    head,
    isNumber: true,
    cell: (row) => format(values[row.index] ?? null),
  });
  return (
    <Table
      label="Activity"
      rows={rows}
      keyOf={(row) => row.at}
      empty="Nothing was recorded in this time."
      columns={[
        { head: "from", cell: (row) => clock(row.at * 1000) },
        number("requests", perSecond(of, "requests"), rate),
        number("errors", perSecond(of, "errors"), rate),
        number("p50", column(of, "p50_us"), micros),
        number("p99", column(of, "p99_us"), micros),
        number("busy workers", column(of, "busy_workers"), short),
        number("queue", column(of, "queue_wait_us"), micros),
        number("sent", perSecond(of, "bytes_out"), bytesRate),
        number("received", perSecond(of, "bytes_in"), bytesRate),
        number("server memory", column(of, "server_memory_bytes"), bytes),
      ]}
    />
  );
}

function said(stretch: Stretch): string {
  const from = stretch.from * 1000;
  return `${seconds(stretch.to - stretch.from)} from ${day(from)} ${clock(from, from)}`;
}

function nowS(): number {
  return Math.floor(Date.now() / 1000);
}
