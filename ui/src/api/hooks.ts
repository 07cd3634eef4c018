// What pages use to have something from the server on the screen and keep it fresh.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Refusal, ask, lostSince, sentence } from "./client";
import { type StreamState, backoffMs, listen } from "./events";
import { live, nameOf } from "./live";

/** Something asked for: what came last, and what went wrong since. */
export interface Asked<T> {
  value: T | null;
  error: string | null;
  isLoading: boolean;
  again(): void;
}

/**
 * Asks once, again when the path changes, and every `everyMs` while somebody looks, which is ten
 * seconds at least; 0 is once.
 */
export function useAsk<T>(path: string | null, everyMs = 0): Asked<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(path !== null);
  const [turn, setTurn] = useState(0);
  const shownPath = useRef<string | null>(null);
  useEffect(() => {
    if (path === null) return;
    if (bare(shownPath.current) !== bare(path)) setValue(null);
    shownPath.current = path;
    setLoading(true);
    const end = new AbortController();
    let timer = 0;
    let failures = 0;
    const once = async (): Promise<void> => {
      try {
        const got = await ask<T>(path, end.signal);
        failures = 0;
        setValue(got);
        setError(null);
      } catch (problem) {
        if (end.signal.aborted) return;
        failures += 1;
        setError(sentence(problem));
      }
      setLoading(false);
      const wait = failures > 0 ? backoffMs(failures) : Math.max(everyMs, ASK_MS_MIN);
      if (everyMs > 0 || lostSince.value !== null) {
        timer = window.setTimeout(() => whenSeen(() => void once(), end.signal), wait);
      }
    };
    void once();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, turn]);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  return { value, error, isLoading, again };
}

/** No page asks more often than that; what changes faster is pushed. */
const ASK_MS_MIN = 10_000;
/** How often ages are said anew. */
const AGES_MS = 5000;

/**
 * Follows a page that the server pushes, with a query of its own where it has one:
 * `running?limit=200`; null follows nothing. Where the server does not push it, `otherwise` is
 * asked for every ten seconds.
 */
export function useLive<T>(topic: string | null, otherwise: string | null): Asked<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isPushed, setPushed] = useState(true);
  const shown = useRef<string | null>(null);
  useEffect(() => {
    if (topic === null || !isPushed) return;
    if (shown.current !== null && nameOf(shown.current) !== nameOf(topic)) setValue(null);
    shown.current = topic;
    return live().follow(topic, {
      onValue: (got) => {
        setValue(got as T);
        setError(null);
      },
      onState: (state) => {
        if (state.is === "refused") setPushed(false);
        if (state.is === "waiting") setError(state.why);
        if (state.is === "open") setError(null);
      },
    });
  }, [topic, isPushed]);
  const asked = useAsk<T>(isPushed ? null : otherwise, ASK_MS_MIN);
  useAges();
  if (!isPushed) return asked;
  const isLoading = topic !== null && value === null && error === null;
  return { value, error, isLoading, again: asked.again };
}

/** Draws again now and then: nothing comes while nothing changes, but ages go on. */
function useAges(): void {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setTurn((before) => before + 1);
    }, AGES_MS);
    return () => clearInterval(timer);
  }, []);
}

/** Follows a stream of events, each given to `onEvent`; null as path follows nothing. */
export function useEvents(
  path: string | null,
  onEvent: (name: string, value: unknown) => void,
): StreamState | null {
  const [state, setState] = useState<StreamState | null>(null);
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    if (path === null) return;
    const stop = listen(path, {
      onEvent: (event) => {
        const value = parsed<unknown>(event.data);
        latest.current(event.name, value ?? event.data);
      },
      onState: setState,
    });
    return () => {
      stop();
      setState(null);
    };
  }, [path]);
  return state;
}

/** The state of doing something: what came of it, in words. */
export interface Deed {
  isRunning: boolean;
  said: string | null;
  error: string | null;
  run(what: () => Promise<{ text?: string } | string>): Promise<boolean>;
  clear(): void;
}

/** Runs one action at a time and keeps its outcome as a sentence. */
export function useDeed(): Deed {
  const [isRunning, setRunning] = useState(false);
  const [said, setSaid] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const run = useCallback(async (what: () => Promise<{ text?: string } | string>) => {
    setRunning(true);
    setSaid(null);
    setError(null);
    try {
      const got = await what();
      setSaid((typeof got === "string" ? got : got.text) || "done");
      return true;
    } catch (problem) {
      setError(problem instanceof Refusal ? problem.message : sentence(problem));
      return false;
    } finally {
      setRunning(false);
    }
  }, []);
  const clear = useCallback(() => {
    setSaid(null);
    setError(null);
  }, []);
  return { isRunning, said, error, run, clear };
}

function parsed<T>(text: string): T | null {
  try {
    return JSON.parse(text) as T;
  } catch {
    return null;
  }
}

function bare(path: string | null): string {
  return path?.split("?")[0] ?? "";
}

function whenSeen(then: () => void, end: AbortSignal): void {
  if (!document.hidden) return then();
  const look = (): void => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", look);
    if (!end.aborted) then();
  };
  document.addEventListener("visibilitychange", look);
}
