// How much of what, since start, today and last zeroing?
import type { JSX } from "preact";
import type { SpanCounts, Statistics as Told } from "../api/answers";
import { act } from "../api/client";
import { useDeed, useLive } from "../api/hooks";
import { Action } from "../parts/act";
import { Outcome, Page, Panel, Waiting } from "../parts/page";
import { Say } from "../parts/say";
import { Table } from "../parts/table";
import { ago, bytes, count, words } from "../text/format";

/** Names of stretches of time. */
type Stretch = "start" | "today" | "zero";

const STRETCHES: [Stretch, string][] = [
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
export function groups(told: Record<Stretch, SpanCounts>): { name: string; rows: CountRow[] }[] {
  const of = (stretch: Stretch, group: string): Record<string, number> => {
    const found = Object.entries(told[stretch]).find(([name]) => name === group);
    return { ...found?.[1] };
  };
  return Object.entries(told.start)
    .filter(([, value]) => typeof value === "object")
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
  const { start, zero } = props.of;
  return (
    <>
      {`${count(start.requests)} requests since the start, ${ago(start.since_unix_ms)}`}; last
      zeroed {ago(zero.since_unix_ms)}. These pages are not counted.
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
