// What happens to these requests, step by step? A filter, and the events of every request that
// matches it, as they happen. Events are kept in this browser only.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useEvents } from "../api/hooks";
import type { StreamState } from "../api/events";
import { link, searchOf } from "../address";
import { type Field, chosen } from "../parts/filter";
import { Filters } from "../parts/filters";
import { Notice, Page } from "../parts/page";
import { Code, Say } from "../parts/say";
import { go, place } from "../route";
import { count, many, micros, words } from "../text/format";
import { dump, fromHex } from "../text/dump";
import { save } from "../text/save";

/** Events kept, and of them shown; the oldest go first. */
const KEPT_MAX = 5000;
const SHOWN_MAX = 400;

/** What can be filtered by; the names are those of the API. */
export const FIELDS: Field[] = [
  { key: "path", label: "Path", placeholder: "/cgi-bin/* or ~regex" },
  { key: "client", label: "Client", placeholder: "192.0.2.7" },
  { key: "slower", label: "Slower than", placeholder: "100ms" },
  { key: "status", label: "Status", placeholder: "5xx" },
  { key: "method", label: "Method", placeholder: "POST", isMore: true },
  { key: "site", label: "Site", isMore: true },
  { key: "handler", label: "Handler", placeholder: "cgi", isMore: true },
  { key: "header", label: "Header", placeholder: "User-Agent:curl.*", isMore: true },
  {
    key: "trigger",
    label: "Start on",
    placeholder: "*exit code*",
    isMore: true,
    title: "Nothing is shown until the text of an event matches this: a glob, or a regex after ~.",
  },
  {
    key: "keep",
    label: "and events before it",
    placeholder: "100",
    isMore: true,
    title: "How many events from before the trigger are shown.",
  },
  { key: "head", label: "bytes of heads", isSwitch: true },
  { key: "body", label: "bytes of bodies", isSwitch: true },
  {
    key: "secrets",
    label: "secrets too",
    isSwitch: true,
    title: "Shows Authorization, cookies and secret query keys as they are. The audit log says so.",
  },
];

/** One event of a watched request's life. */
interface WatchEvent {
  t_us: number;
  id: string;
  stage: string;
  text?: string;
  [field: string]: unknown;
}

/** An event as it is kept here. */
interface Kept {
  number: number;
  event: WatchEvent;
}

/** The page. */
export function Watch(): JSX.Element {
  const query = chosen(FIELDS, place.value.query);
  const isOn = place.value.query["on"] === "1";
  const kept = useRef<Kept[]>([]);
  const next = useRef(0);
  const dropped = useRef(0);
  const [, redraw] = useState(0);
  const [isPaused, setPaused] = useState(false);
  const [pausedAt, setPausedAt] = useState(0);
  const [only, setOnly] = useState<string | null>(null);
  const isWaiting = useRef(false);
  const draw = (): void => {
    if (isWaiting.current) return;
    isWaiting.current = true;
    // At most ten times a second, however many events come.
    setTimeout(() => {
      isWaiting.current = false;
      redraw((before) => before + 1);
    }, 100);
  };
  const state = useEvents(isOn ? `v1/watch?${searchOf(query)}` : null, (name, value) => {
    if (name === "dropped") dropped.current += Number((value as { count?: number }).count ?? 1);
    if (name === "message" && typeof value === "object" && value !== null) {
      kept.current.push({ number: next.current++, event: value as WatchEvent });
      if (kept.current.length > KEPT_MAX * 1.1) kept.current = kept.current.slice(-KEPT_MAX);
    }
    draw();
  });
  const pause = (): void => {
    setPausedAt(next.current);
    setPaused(!isPaused);
  };
  usePauseKey(pause, isOn);
  const until = isPaused ? pausedAt : next.current;
  const matching = kept.current.filter(
    (one) => one.number < until && (only === null || one.event.id === only),
  );
  return (
    <Page
      title="Watch"
      lead="Events of requests as they happen. Secrets are left out unless you ask."
    >
      <Filters
        fields={FIELDS}
        query={query}
        apply={isOn ? "Apply" : "Start"}
        onApply={(given) => go(link("watch", { ...given, on: true }))}
      />
      <Tools
        isOn={isOn}
        isPaused={isPaused}
        hasEvents={kept.current.length > 0}
        onPause={pause}
        onStop={() => go(link("watch", query))}
        onClear={() => {
          kept.current = [];
          dropped.current = 0;
          draw();
        }}
        onDownload={() => {
          const events = matching.map((one) => one.event);
          save("hob-watch.json", JSON.stringify(events, null, 1), "application/json");
        }}
      />
      <State isOn={isOn} state={state} />
      {dropped.current > 0 && (
        <Notice level="warning">
          {many(dropped.current, "event")} left out, so as not to slow the server. A narrower filter
          misses nothing.
        </Notice>
      )}
      {only !== null && (
        <p>
          Only request <Code text={only} />.{" "}
          <button type="button" onClick={() => setOnly(null)}>
            Show all
          </button>
        </p>
      )}
      <Events of={matching.slice(-SHOWN_MAX)} isOn={isOn} onOnly={setOnly} />
      <p class="note" role="status">
        {many(matching.length, "event")}
        {matching.length > SHOWN_MAX && `, the last ${count(SHOWN_MAX)} shown`}
        {isPaused && `; paused, ${count(next.current - pausedAt)} more since`}
      </p>
    </Page>
  );
}

function usePauseKey(pause: () => void, isOn: boolean): void {
  const latest = useRef(pause);
  latest.current = pause;
  useEffect(() => {
    if (!isOn) return;
    const press = (event: KeyboardEvent): void => {
      const isTyping = (event.target as HTMLElement).matches("input, select, textarea, button, a");
      if (event.key === " " && !isTyping) {
        event.preventDefault();
        latest.current();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [isOn]);
}

function Tools(props: {
  isOn: boolean;
  isPaused: boolean;
  hasEvents: boolean;
  onPause(): void;
  onStop(): void;
  onClear(): void;
  onDownload(): void;
}): JSX.Element | null {
  if (!props.isOn && !props.hasEvents) return null;
  return (
    <div class="buttons">
      {props.isOn && (
        <>
          <button type="button" aria-pressed={props.isPaused} onClick={props.onPause}>
            Pause
          </button>
          <button type="button" onClick={props.onStop}>
            Stop
          </button>
        </>
      )}
      <button type="button" onClick={props.onClear}>
        Clear
      </button>
      <button type="button" onClick={props.onDownload} disabled={!props.hasEvents}>
        Download JSON
      </button>
    </div>
  );
}

function State(props: { isOn: boolean; state: StreamState | null }): JSX.Element | null {
  const { isOn, state } = props;
  if (!isOn || state === null) return null;
  if (state.is === "open") return null;
  return (
    <Notice level={state.is === "refused" ? "bad" : "warning"}>
      <Say text={state.why} />
      {state.is === "waiting" && `; trying again in ${micros(state.againMs * 1000)}`}
    </Notice>
  );
}

function Events(props: { of: Kept[]; isOn: boolean; onOnly(id: string): void }): JSX.Element {
  if (props.of.length === 0) {
    return (
      <p class="empty">
        {props.isOn
          ? "Waiting for a request that matches. With “slower than” or a status, a request shows once it is done."
          : "Nothing is watched. Choose what to watch, or leave all fields empty for everything, and press Start."}
      </p>
    );
  }
  return (
    <ol class="events" aria-label="Events" tabIndex={0}>
      {props.of.map((one) => (
        <li key={one.number} class={`mark-${markOf(one.event.id)}`}>
          <Event of={one.event} onOnly={props.onOnly} />
        </li>
      ))}
    </ol>
  );
}

/** Fields of every event, which have their own place in its line. */
const OWN = new Set(["t_us", "id", "stage", "text"]);

function Event(props: { of: WatchEvent; onOnly(id: string): void }): JSX.Element {
  const { of } = props;
  const fields = Object.entries(of).filter(([name]) => !OWN.has(name));
  const line = (
    <>
      <span class="at">{micros(of.t_us)}</span>{" "}
      <span class="stage">
        <Say text={of.stage} />
      </span>{" "}
      <Say text={shortOf(of)} />
    </>
  );
  return (
    <div class="event">
      <button
        type="button"
        class="id"
        aria-label={`only request ${of.id}`}
        onClick={() => props.onOnly(of.id)}
      >
        <Say text={of.id} />
      </button>
      {fields.length === 0 ? (
        <div class="line">{line}</div>
      ) : (
        <details>
          <summary>{line}</summary>
          <dl class="pairs">
            {fields.map(([name, value]) => (
              <div key={name}>
                <dt>
                  <Say text={words(name)} />
                </dt>
                <dd>
                  <EventValue name={name} of={value} />
                </dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </div>
  );
}

function EventValue(props: { name: string; of: unknown }): JSX.Element {
  const { name, of } = props;
  const bytes = typeof of === "string" && /(^|_)hex$/.test(name) ? fromHex(of) : null;
  if (bytes !== null) {
    const lines = dump(bytes);
    return (
      <pre class="dump">
        {lines.map((line) => `${line.offset}  ${line.hex}  ${line.text}\n`).join("")}
      </pre>
    );
  }
  if (typeof of === "number" && name.endsWith("_us")) return <>{micros(of)}</>;
  const text = typeof of === "string" ? of : JSON.stringify(of);
  return <Say text={text} lines />;
}

/** What its line says. */
function shortOf(of: WatchEvent): string {
  if (of.text !== undefined) return of.text;
  if (of.outcome !== undefined) return String(of.outcome);
  return of.status === undefined ? "" : `status ${of.status}`;
}

/** A colour for a request, of six. */
function markOf(id: string): number {
  let sum = 0;
  for (const character of id) sum = (sum * 31 + character.charCodeAt(0)) % 65_521;
  return sum % 6;
}
