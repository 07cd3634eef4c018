// Server-sent events over fetch rather than EventSource: a refusal then has its words and its
// status, and the wait between tries is ours.
import { Refusal, open, sentence } from "./client";

/** One event as it came. */
export interface ServerEvent {
  name: string;
  data: string;
}

/** What a stream of events tells its owner. */
export interface Listener {
  onEvent(event: ServerEvent): void;
  /** The stream stands, or why not. */
  onState?(state: StreamState): void;
}

/** How a stream does. */
export type StreamState =
  | { is: "open" }
  | { is: "waiting"; why: string; againMs: number }
  /** The server said no; asking again would not help. */
  | { is: "refused"; why: string };

const WAIT_MS_MIN = 1000;
const WAIT_MS_MAX = 30_000;
/** The server says something every 15 s: after more than this the connection is dead. */
const SILENCE_MS_MAX = 45_000;

/** How long to wait before try number `tries`, from 0: doubling, with a bound. */
export function backoffMs(tries: number): number {
  return Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** Math.min(tries, 10));
}

/** Listens until the returned function is called; connects again when the stream breaks. */
export function listen(path: string, listener: Listener): () => void {
  const end = new AbortController();
  void run(path, listener, end.signal);
  return () => end.abort();
}

async function run(path: string, listener: Listener, end: AbortSignal): Promise<void> {
  let tries = 0;
  while (!end.aborted) {
    let why = "the stream ended";
    const one = new AbortController();
    try {
      const response = await open(path, AbortSignal.any([end, one.signal]));
      listener.onState?.({ is: "open" });
      const parser = new EventParser((event) => {
        tries = 0;
        listener.onEvent(event);
      });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await soon(reader.read());
        if (done || end.aborted) break;
        parser.take(value);
      }
    } catch (error) {
      if (end.aborted) return;
      why = sentence(error);
      if (error instanceof Refusal && error.status >= 400 && error.status < 500) {
        listener.onState?.({ is: "refused", why });
        return;
      }
    }
    one.abort();
    if (end.aborted) return;
    const againMs = backoffMs(tries);
    tries += 1;
    listener.onState?.({ is: "waiting", why, againMs });
    await pause(againMs, end);
  }
}

/** What comes, unless nothing comes for longer than the server is ever silent. */
async function soon<T>(coming: Promise<T>): Promise<T> {
  let timer = 0;
  const silence = new Promise<never>((_, reject) => {
    const say = (): void => reject(new Error(`nothing came for ${SILENCE_MS_MAX / 1000} s`));
    timer = setTimeout(say, SILENCE_MS_MAX) as unknown as number;
  });
  try {
    return await Promise.race([coming, silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** Cuts the text of a stream into events. */
export class EventParser {
  private rest = "";
  private name = "";
  private data: string[] = [];

  constructor(private readonly give: (event: ServerEvent) => void) {}

  /** Takes the next part, cut anywhere. */
  take(part: string): void {
    const lines = (this.rest + part).split(/\r\n|\n|\r(?=[^\n])/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line);
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) {
        this.give({ name: this.name || "message", data: this.data.join("\n") });
      }
      this.name = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
  }
}

function pause(ms: number, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    end.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
