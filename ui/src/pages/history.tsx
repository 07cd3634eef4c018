// What became of a request, and what took it so long? The filter stands in the address; a row leads
// to the whole life of one request.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, sentence } from "../api/client";
import { useAsk } from "../api/hooks";
import type { History, Request } from "../api/answers";
import { type Query, link } from "../address";
import { Filters } from "../parts/filters";
import { chosen } from "../parts/filter";
import { Notice, Page, Waiting } from "../parts/page";
import { Requests } from "../parts/request";
import { Say } from "../parts/say";
import { go, place } from "../route";
import { bytes, clock, count, many } from "../text/format";
import { FIELDS, historyPath, typed } from "./history-query";
import { OneRequest } from "./request";

/** The page: the list, or one request. */
export function HistoryPage(): JSX.Element {
  return place.value.rest === "" ? <List /> : <OneRequest id={place.value.rest} />;
}

function List(): JSX.Element {
  const query = place.value.query;
  const path = historyPath(query);
  const found = useAsk<History>(path);
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
        query={typed(query)}
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
  const [isAsking, setAsking] = useState(false);
  const [before, setBefore] = useState(nextOf(props.first));
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    setOlder([]);
    setBefore(nextOf(props.first));
  }, [props.first]);
  const rows = [...props.first.requests, ...older];
  const isSlowest = props.query["sort"] === "slowest";
  const isCut = props.first.cut === true && (before === null || isSlowest);
  const shown = useRef(props.first);
  shown.current = props.first;
  const next = async (): Promise<void> => {
    const of = props.first;
    setAsking(true);
    try {
      const got = await ask<History>(historyPath(props.query, before ?? undefined));
      // What belongs to a first page that is no longer shown would leave a hole.
      if (shown.current === of) {
        setOlder((now) => [...now, ...got.requests]);
        setBefore(nextOf(got));
        setError(null);
      }
    } catch (problem) {
      setError(sentence(problem));
    }
    setAsking(false);
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
        {isCut && " That is as far as one search goes: there may be others. Narrow it down."}
      </p>
      {before !== null && (
        <button type="button" onClick={() => void next()} disabled={isAsking} aria-busy={isAsking}>
          {isSlowest ? "Next slowest" : "Older requests"}
        </button>
      )}
    </>
  );
}

/** What to ask for the next requests by; null when there are none. */
function nextOf(history: History): string | null {
  return history.more === true ? (history.next ?? null) : null;
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
