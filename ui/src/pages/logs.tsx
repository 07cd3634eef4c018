// What is being logged? The end of a log file, and its new lines as they come.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useAsk, useEvents } from "../api/hooks";
import type { AccessLogs, LogFile, LogLines } from "../api/answers";
import { link } from "../address";
import { Notice, Page, Waiting } from "../parts/page";
import { Code, Say } from "../parts/say";
import { go, place } from "../route";
import { bytes, count, many } from "../text/format";

/** Lines kept on the page; the oldest go first. */
const LINES_MAX = 2000;
const LINES_FIRST = 200;

/** The page. */
export function Logs(): JSX.Element {
  const asked = useAsk<AccessLogs>("v1/logs");
  const logs = asked.value?.logs ?? [];
  const id = place.value.rest || String(logs[0]?.id ?? "");
  const log = logs.find((one) => String(one.id) === id);
  return (
    <Page title="Logs" lead={log && <Lead of={log} />}>
      <Waiting asked={asked} what="the logs" />
      {asked.value && logs.length === 0 && (
        <p class="empty">No log is written. The key “log” in the config says where one goes.</p>
      )}
      {logs.length > 0 && (
        <div class="ranges">
          <label class="field">
            <span>Log</span>
            <select
              value={id}
              onChange={(event) => go(link("logs", {}, event.currentTarget.value))}
            >
              {logs.map((one) => (
                <option key={one.id} value={String(one.id)}>
                  {one.name}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      {id !== "" && <Tail key={id} id={id} />}
    </Page>
  );
}

function Lead(props: { of: LogFile }): JSX.Element {
  return (
    <>
      <Code text={props.of.path ?? props.of.name} />
      {props.of.bytes !== null && `, ${bytes(props.of.bytes)}`}
    </>
  );
}

function Tail(props: { id: string }): JSX.Element {
  const path = `v1/logs/${encodeURIComponent(props.id)}`;
  const asked = useAsk<LogLines>(`${path}?lines=${LINES_FIRST}`);
  const [lines, setLines] = useState<string[]>([]);
  const [isPaused, setPaused] = useState(false);
  const [part, setPart] = useState("");
  const missed = useRef(0);
  useEffect(() => {
    if (asked.value) setLines(asked.value.lines);
  }, [asked.value]);
  const state = useEvents(asked.value ? `${path}/tail` : null, (name, value) => {
    if (name !== "line") return;
    if (isPaused) missed.current += 1;
    const line = typeof value === "string" ? value : lineOf(value);
    setLines((before) => [...before.slice(-LINES_MAX + 1), line]);
  });
  const frozen = useRef<string[]>([]);
  if (!isPaused) frozen.current = lines;
  const shown = frozen.current.filter((line) => line.toLowerCase().includes(part.toLowerCase()));
  const pause = (): void => {
    missed.current = 0;
    setPaused(!isPaused);
  };
  return (
    <>
      <div class="ranges">
        <label class="field">
          <span>Show lines with</span>
          <input
            type="text"
            value={part}
            spellcheck={false}
            onInput={(event) => setPart(event.currentTarget.value)}
          />
        </label>
        <button type="button" aria-pressed={isPaused} onClick={pause}>
          Pause
        </button>
      </div>
      <Waiting asked={asked} what="this log" />
      {state !== null && state.is !== "open" && (
        <Notice level="warning">
          <Say text={state.why} />
        </Notice>
      )}
      <Lines of={shown} isFollowing={!isPaused} />
      <p class="note" role="status">
        {many(shown.length, "line")} shown
        {isPaused && `; paused, ${count(missed.current)} more since`}
      </p>
    </>
  );
}

/** The lines; stays at the end unless somebody scrolled away from it. */
function Lines(props: { of: string[]; isFollowing: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = box.current;
    if (element && isAtEnd.current && props.isFollowing) element.scrollTop = element.scrollHeight;
  });
  return (
    <div
      class="log"
      ref={box}
      role="log"
      aria-label="Lines of the log"
      aria-live="off"
      tabIndex={0}
      onScroll={(event) => {
        const of = event.currentTarget;
        isAtEnd.current = of.scrollHeight - of.scrollTop - of.clientHeight < 30;
      }}
    >
      {props.of.length === 0 && <p class="empty">No line yet.</p>}
      {props.of.map((line, index) => (
        <div key={index} class="line">
          <Say text={line} />
        </div>
      ))}
    </div>
  );
}

function lineOf(value: unknown): string {
  const of = value as { line?: unknown; text?: unknown } | null;
  return String(of?.line ?? of?.text ?? JSON.stringify(value));
}
