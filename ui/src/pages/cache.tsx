// What is in memory, and does it help? And throwing some or all of it away.
import type { JSX } from "preact";
import { act } from "../api/client";
import { useAsk, useDeed } from "../api/hooks";
import type { CacheContents, PurgeOutcome } from "../api/answers";
import { link, searchOf } from "../address";
import { Action } from "../parts/act";
import { Facts } from "../parts/facts";
import { type Field, chosen } from "../parts/filter";
import { Filters } from "../parts/filters";
import { Outcome, Page, Panel, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { Table } from "../parts/table";
import { go, place } from "../route";
import { bytes, count, seconds } from "../text/format";

const FIELDS: Field[] = [
  { key: "q", label: "Search", placeholder: "part of a path" },
  {
    key: "sort",
    label: "Order",
    choices: [
      ["", "largest first"],
      ["hits", "most used first"],
      ["age", "oldest first"],
    ],
  },
];

/** The page. */
export function Cache(): JSX.Element {
  const query = place.value.query;
  const search = searchOf({ limit: 200, sort: "bytes", ...chosen(FIELDS, query) });
  const asked = useAsk<CacheContents>(`v1/cache?${search}`);
  const deed = useDeed();
  const purge = (what: object): void => {
    void deed
      .run(async () => (await act<PurgeOutcome>("v1/cache/purge", what)).text)
      .then(asked.again);
  };
  return (
    <Page
      title="Cache"
      lead="Files and answers that are kept in memory."
      tools={
        <>
          <button type="button" onClick={asked.again}>
            Refresh
          </button>
          <Action
            label="Purge everything"
            isDangerous
            confirm="The whole cache is thrown away. What is asked for next is read anew: slower for a moment, never wrong."
            isOff={deed.isRunning}
            onDo={() => purge({ all: true })}
          />
        </>
      }
    >
      <Filters
        fields={FIELDS}
        query={query}
        apply="Search"
        onApply={(next) => go(link("cache", next))}
      />
      <Outcome deed={deed} />
      <Waiting asked={asked} what="the cache" />
      {asked.value && (
        <Panel title="In all">
          <Facts of={asked.value.totals} />
        </Panel>
      )}
      {asked.value && (
        <Table
          label="Entries of the cache"
          rows={asked.value.entries}
          keyOf={(row) => row.path}
          empty={query["q"] ? "Nothing in the cache has that in its path." : "The cache is empty."}
          columns={[
            {
              head: "path",
              isMain: true,
              by: (row) => row.path,
              cell: (row) => <Code text={row.path} />,
            },
            {
              head: "size",
              isNumber: true,
              by: (row) => row.bytes,
              cell: (row) => bytes(row.bytes),
            },
            {
              head: "hits",
              isNumber: true,
              by: (row) => row.hits,
              cell: (row) => count(row.hits),
            },
            {
              head: "age",
              isNumber: true,
              isWide: true,
              by: (row) => row.age_s,
              cell: (row) => seconds(row.age_s),
            },
            {
              head: "state",
              isWide: true,
              by: (row) => row.state,
              cell: (row) => <Say text={row.state} />,
            },
            {
              head: "actions",
              cell: (row) => (
                <Action
                  label="Purge"
                  on={row.path}
                  isOff={deed.isRunning}
                  onDo={() => purge({ path: row.path })}
                />
              ),
            },
          ]}
        />
      )}
    </Page>
  );
}
