// Who is not heard for a while, and why? And hearing them again.
import type { JSX } from "preact";
import { act } from "../api/client";
import { useAsk, useDeed } from "../api/hooks";
import type { BanOutcome, Banned } from "../api/answers";
import { searchOf } from "../address";
import { Action } from "../parts/act";
import { Outcome, Page, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { Table } from "../parts/table";
import { clock, count, day } from "../text/format";

/** Bans that are shown. */
const LIMIT = 500;

/** The page. */
export function Bans(): JSX.Element {
  const asked = useAsk<Banned>(`v1/bans?${searchOf({ limit: LIMIT })}`);
  const deed = useDeed();
  const lift = (what: { client: string } | { all: string }): void => {
    void deed
      .run(async () => (await act<BanOutcome>(`v1/bans/lift?${searchOf(what)}`)).text)
      .then(asked.again);
  };
  const moment = (unixMs: number): string => `${day(unixMs)} ${clock(unixMs, unixMs)}`;
  return (
    <Page
      title="Bans"
      lead="Clients that were refused too often, and those that an operator has banned. Who is free first stands in front."
      tools={
        <>
          <button type="button" onClick={asked.again}>
            Refresh
          </button>
          <Action
            label="Lift all"
            isDangerous
            confirm="All who are banned are served again. Whoever goes on as before is banned again."
            isOff={deed.isRunning}
            onDo={() => lift({ all: "true" })}
          />
        </>
      }
    >
      <Outcome deed={deed} />
      <Waiting asked={asked} what="the bans" />
      {asked.value && asked.value.total > asked.value.bans.length && (
        <p>
          {count(asked.value.bans.length)} of {count(asked.value.total)} are shown.
        </p>
      )}
      {asked.value && (
        <Table
          label="Clients that are banned"
          rows={asked.value.bans}
          keyOf={(row) => row.client}
          empty="Nobody is banned."
          columns={[
            {
              head: "client",
              isMain: true,
              by: (row) => row.client,
              cell: (row) => <Code text={row.client} />,
            },
            {
              head: "by",
              by: (row) => row.rule ?? "",
              cell: (row) => <Say text={row.rule ?? "an operator"} />,
            },
            {
              head: "refused last",
              isWide: true,
              by: (row) => row.why ?? "",
              cell: (row) => <Say text={row.why ?? ""} />,
            },
            {
              head: "since",
              isWide: true,
              by: (row) => row.since_unix_ms,
              cell: (row) => moment(row.since_unix_ms),
            },
            {
              head: "until",
              by: (row) => row.until_unix_ms,
              cell: (row) => moment(row.until_unix_ms),
            },
            {
              head: "refused",
              isNumber: true,
              by: (row) => row.refused,
              cell: (row) => count(row.refused),
            },
            {
              head: "actions",
              cell: (row) => (
                <Action
                  label="Lift"
                  on={row.client}
                  isOff={deed.isRunning}
                  onDo={() => lift({ client: row.client })}
                />
              ),
            },
          ]}
        />
      )}
    </Page>
  );
}
