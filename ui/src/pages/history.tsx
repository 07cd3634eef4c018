// What became of a request, and what took it so long? The filter stands in the address; a row leads
// to the whole life of one request.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, sentence } from "../api/client";
import { useAsk } from "../api/hooks";
import type { History, Request } from "../api/shapes";
import { type Query, type QueryGiven, link, searchOf } from "../address";
import { type Field, Filters, chosen } from "../parts/filters";
import { Notice, Page, Waiting } from "../parts/page";
import { Requests } from "../parts/request";
import { Say } from "../parts/say";
import { go, place } from "../route";
import { bytes, clock, count, day, many } from "../text/format";
import { OneRequest } from "./request";

const PAGE_ROWS = 100;

/** What can be filtered by; the names are those of the API. */
export const FIELDS: Field[] = [
  { key: "q", label: "Search", placeholder: "any text of the request" },
  { key: "path", label: "Path", placeholder: "/cgi-bin/*" },
  { key: "status", label: "Status", placeholder: "404 or 5xx" },
  { key: "slower", label: "Slower than", placeholder: "100ms" },
  {
    key: "sort",
    label: "Order",
    choices: [
      ["", "newest first"],
      ["slowest", "slowest first"],
    ],
  },
  { key: "client", label: "Client", placeholder: "192.0.2.7", isMore: true },
  { key: "site", label: "Site", isMore: true },
  { key: "route", label: "Route", placeholder: "/cgi-bin/*", isMore: true },
  { key: "method", label: "Method", placeholder: "GET", isMore: true },
  { key: "handler", label: "Handler", placeholder: "cgi", isMore: true },
  {
    key: "fault",
    label: "Whose fault",
    isMore: true,
    choices: [
      ["", "anyone's or none"],
      ["client", "the client's"],
      ["server", "the server's"],
      ["script", "the program's"],
      ["upstream", "another server's"],
    ],
  },
  { key: "since", label: "Since", placeholder: "2026-11-22 14:00", isMore: true },
  { key: "until", label: "Until", placeholder: "2026-11-22 15:00", isMore: true },
];

/** The query of the API for the query of the address. */
export function historyPath(query: Query, before?: string): string {
  const asked: QueryGiven = { limit: PAGE_ROWS, ...chosen(FIELDS, query), before };
  for (const key of ["since", "until"]) {
    const given = query[key];
    if (given !== undefined) asked[key] = momentOf(given);
  }
  return `v1/history?${searchOf(asked)}`;
}

/** A moment as it is typed, or as Unix milliseconds; null when it is neither. */
export function momentOf(text: string): number | null {
  if (/^\d{11,}$/.test(text)) return Number(text);
  const ms = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(ms) ? null : ms;
}

/** The page: the list, or one request. */
export function HistoryPage(): JSX.Element {
  return place.value.rest === "" ? <List /> : <OneRequest id={place.value.rest} />;
}

function List(): JSX.Element {
  const query = place.value.query;
  const path = historyPath(query);
  const found = useAsk<History>(path);
  const shown = { ...query };
  for (const key of ["since", "until"])
    if (/^\d{11,}$/.test(shown[key] ?? "")) shown[key] = typed(shown[key]!);
  return (
    <Page
      title="History"
      lead={found.value ? <Kept of={found.value} /> : "Finished requests."}
      tools={
        <button type="button" onClick={found.again} aria-busy={found.isLoading}>
          Refresh
        </button>
      }
    >
      <Filters
        fields={FIELDS}
        query={shown}
        apply="Search"
        onApply={(next) => go(link("history", next))}
      />
      <Waiting asked={found} what="the history" />
      {found.value && <Found key={path} first={found.value} query={query} />}
    </Page>
  );
}

function Found(props: { first: History; query: Query }): JSX.Element {
  const [older, setOlder] = useState<Request[]>([]);
  const [hasMore, setMore] = useState(props.first.more === true);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    setOlder([]);
    setMore(props.first.more === true);
  }, [props.first]);
  const rows = [...props.first.requests, ...older];
  const isSlowest = props.query["sort"] === "slowest";
  const next = async (): Promise<void> => {
    try {
      const got = await ask<History>(historyPath(props.query, rows.at(-1)?.id));
      setOlder([...older, ...got.requests]);
      setMore(got.more === true && got.requests.length > 0);
      setError(null);
    } catch (problem) {
      setError(sentence(problem));
    }
  };
  const isFiltered = Object.keys(chosen(FIELDS, props.query)).length > 0;
  return (
    <>
      <Requests
        label="Finished requests"
        rows={rows}
        empty={
          isFiltered
            ? "No request that is still kept matches. Try fewer fields, or a glob such as /cgi-bin/*."
            : "No request has finished since the server started."
        }
      />
      {error !== null && (
        <Notice level="bad">
          <Say text={error} />
        </Notice>
      )}
      <p class="note" role="status">
        {many(rows.length, "request")} shown
        {props.first.scanned !== undefined && `, ${count(props.first.scanned)} looked at`}.
      </p>
      {hasMore && !isSlowest && (
        <button type="button" onClick={() => void next()}>
          Older requests
        </button>
      )}
    </>
  );
}

function Kept(props: { of: History }): JSX.Element {
  const { of } = props;
  return (
    <>
      {many(of.kept, "finished request")} kept
      {of.kept_bytes ? ` in ${bytes(of.kept_bytes)}` : ""}
      {of.oldest_unix_ms ? `, back to ${clock(of.oldest_unix_ms)}` : ""}.
    </>
  );
}

function typed(unixMs: string): string {
  const ms = Number(unixMs);
  return `${day(ms)} ${clock(ms, ms)}`;
}
