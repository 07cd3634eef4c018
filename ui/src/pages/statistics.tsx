// How much of what, since start, today and last zeroing?
import type { JSX } from "preact";
import { act } from "../api/client";
import { useDeed, useLive } from "../api/hooks";
import { Action } from "../parts/act";
import { Outcome, Page, Panel, Waiting } from "../parts/page";
import { Say } from "../parts/say";
import { Table } from "../parts/table";
import { ago, bytes, count, words } from "../text/format";

/** Counts of one stretch of time: single ones, and groups of them. */
type Counts = Record<string, number | Record<string, number>>;

interface Told {
  start: Counts;
  today: Counts;
  zero: Counts;
}

const STRETCHES: [keyof Told, string][] = [
  ["start", "since start"],
  ["today", "today"],
  ["zero", "since zeroing"],
];

/** One thing that is counted, over the three stretches. */
export interface CountRow {
  name: string;
  counts: number[];
}

/** Counts beside each other, by group; those that are all 0 are left out but in the first group. */
export function groups(told: Told): { name: string; rows: CountRow[] }[] {
  const of = (stretch: keyof Told, group: string): Record<string, number> => {
    const found = told[stretch]?.[group];
    return typeof found === "object" && found !== null ? found : {};
  };
  return Object.entries(told.start)
    .filter(([, value]) => typeof value === "object" && value !== null)
    .map(([group]) => {
      const names = new Set(STRETCHES.flatMap(([stretch]) => Object.keys(of(stretch, group))));
      const rows = [...names].map((name) => ({
        name,
        counts: STRETCHES.map(([stretch]) => of(stretch, group)[name] ?? 0),
      }));
      return { name: group, rows: rows.filter((row) => row.counts.some((value) => value > 0)) };
    });
}

/** The page. */
export function Statistics(): JSX.Element {
  const asked = useLive<Told>("statistics", "v1/statistics");
  const deed = useDeed();
  return (
    <Page
      title="Statistics"
      lead={asked.value ? <Since of={asked.value} /> : "These pages are not counted."}
      tools={
        <Action
          label="Zero"
          confirm="The column “since zeroing” starts again from nothing. Those since start and today go on."
          isOff={deed.isRunning}
          onDo={() => void deed.run(() => act("v1/statistics/zero"))}
        />
      }
    >
      <Outcome deed={deed} />
      <Waiting asked={asked} what="the statistics" />
      {asked.value && (
        <div class="columns">
          {groups(asked.value).map((group) => (
            <Panel key={group.name} title={words(group.name)}>
              <Group of={group} />
            </Panel>
          ))}
        </div>
      )}
    </Page>
  );
}

function Since(props: { of: Told }): JSX.Element {
  const since = (stretch: keyof Told): string => {
    const ms = props.of[stretch]?.["since_unix_ms"];
    return typeof ms === "number" ? ago(ms) : "–";
  };
  const requests = props.of.start["requests"];
  return (
    <>
      {typeof requests === "number" && `${count(requests)} requests since the start, `}
      {since("start")}; last zeroed {since("zero")}. These pages are not counted.
    </>
  );
}

function Group(props: { of: { name: string; rows: CountRow[] } }): JSX.Element {
  const format = props.of.name === "bytes" ? bytes : count;
  return (
    <Table
      label={words(props.of.name)}
      rows={props.of.rows}
      keyOf={(row) => row.name}
      empty="None so far."
      columns={[
        {
          head: "what",
          isMain: true,
          by: (row) => row.name,
          cell: (row) => <Say text={words(row.name)} />,
        },
        ...STRETCHES.map(([, head], index) => ({
          head,
          isNumber: true,
          by: (row: CountRow) => row.counts[index],
          cell: (row: CountRow) => format(row.counts[index]),
        })),
      ]}
    />
  );
}
