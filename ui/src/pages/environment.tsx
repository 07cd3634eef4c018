// What machine, build, limits and sandbox is this? And how near its limits it is, by the minute.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { useAsk } from "../api/hooks";
import type { Environment as Told, ResourceSeries } from "../api/answers";
import { link } from "../address";
import { Graph } from "../chart/graph";
import { column, times } from "../chart/series";
import { Facts } from "../parts/facts";
import { Page, Panel, Waiting } from "../parts/page";
import { go } from "../route";
import { NOTHING, byName, words } from "../text/format";

const HOURS_SHOWN = 6;
/** More would be a wall of charts; the API has them all. */
const CHARTS_MAX = 24;

/** The page. */
export function Environment(): JSX.Element {
  const asked = useAsk<Told>("v1/environment");
  return (
    <Page
      title="Environment"
      tools={
        <button type="button" onClick={asked.again}>
          Refresh
        </button>
      }
    >
      <Waiting asked={asked} what="the environment" />
      {asked.value && (
        <Panel title="Server and machine">
          <Facts of={asked.value} />
        </Panel>
      )}
      <Resources />
    </Page>
  );
}

function Resources(): JSX.Element {
  const path = useMemo(() => {
    const to = Math.floor(Date.now() / 1000);
    return `v1/resources?from=${to - HOURS_SHOWN * 3600}&to=${to}&step=60`;
  }, []);
  const asked = useAsk<ResourceSeries>(path);
  const of = asked.value;
  return (
    <Panel title={`Other resources, the last ${HOURS_SHOWN} hours`}>
      <Waiting asked={asked} what="the resources" />
      {of && <Charts of={of} />}
    </Panel>
  );
}

function Charts(props: { of: ResourceSeries }): JSX.Element {
  const { of } = props;
  const cursor = useSignal<number | null>(null);
  const at = useMemo(() => times(of), [of]);
  const shown = of.columns
    .map((name) => ({ name, values: column(of, name) }))
    .filter((one) => one.values.some((value) => value !== null && value !== 0))
    .slice(0, CHARTS_MAX);
  if (shown.length === 0)
    return <p class="empty">Nothing has been recorded yet: it takes a minute.</p>;
  const from = of.from_unix_s;
  const stretch = { from, to: from + of.rows.length * of.step_s };
  return (
    <div class="charts">
      {shown.map((one, index) => (
        <Graph
          key={one.name}
          title={words(one.name)}
          times={at}
          lines={[
            { label: "", values: one.values, colour: `--line-${(index % 5) + 1}`, isFilled: true },
          ]}
          stretch={stretch}
          format={(value) => (value === null ? NOTHING : byName(one.name, value))}
          isBinary={one.name.includes("bytes")}
          cursor={cursor}
          onChoose={(next) =>
            go(link("activity", { from: Math.floor(next.from), to: Math.ceil(next.to) }))
          }
        />
      ))}
    </div>
  );
}
