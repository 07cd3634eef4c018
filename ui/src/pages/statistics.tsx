// How much of what, since start, today and last zeroing?
import type { JSX } from "preact";
import { act } from "../api/client";
import { useAsk, useDeed } from "../api/hooks";
import { Action } from "../parts/act";
import { Facts } from "../parts/facts";
import { Outcome, Page, Panel, Waiting } from "../parts/page";

/** The page. */
export function Statistics(): JSX.Element {
  const asked = useAsk<object>("v1/statistics", 10_000);
  const deed = useDeed();
  return (
    <Page
      title="Statistics"
      lead="These pages and their requests are not counted."
      tools={
        <Action
          label="Zero"
          confirm="The columns “since zeroing” start again from nothing. Those since start and today go on."
          isOff={deed.isRunning}
          onDo={() => void deed.run(() => act("v1/statistics/zero")).then(asked.again)}
        />
      }
    >
      <Outcome deed={deed} />
      <Waiting asked={asked} what="the statistics" />
      {asked.value && (
        <Panel title="Counted">
          <Facts of={asked.value} />
        </Panel>
      )}
    </Page>
  );
}
