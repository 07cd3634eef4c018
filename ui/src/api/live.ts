// The one stream of this tab: `GET /v1/live` with all pages that something on the screen follows.
// Nothing is followed while the tab cannot be seen. The server sends a page when it has changed.
import { searchOf } from "../address";
import { type Listener, type StreamState, listen } from "./events";

/** What hears of a page that is pushed. */
export interface Follower {
  onValue(value: unknown): void;
  /** The stream stands, or why not; refused means that the server does not push this. */
  onState(state: StreamState): void;
}

/** Opens a stream and returns what closes it. */
type Open = (path: string, listener: Listener) => () => void;

/** Everything that is followed over one stream. */
export class LiveStream {
  private readonly followers = new Map<string, Set<Follower>>();
  private followed = "";
  private close: (() => void) | null = null;
  private isDue = false;

  constructor(
    private readonly open: Open,
    private readonly isSeen: () => boolean,
  ) {}

  /** Follows a page, with a query of its own where it has one: `running?limit=200`. */
  follow(topic: string, follower: Follower): () => void {
    const all = this.followers.get(topic) ?? new Set();
    this.followers.set(topic, all.add(follower));
    this.renewSoon();
    return () => {
      all.delete(follower);
      if (all.size === 0 && this.followers.get(topic) === all) this.followers.delete(topic);
      this.renewSoon();
    };
  }

  /** Once, after all that goes and comes at a time: one page leaves the screen, another enters. */
  renewSoon(): void {
    if (this.isDue) return;
    this.isDue = true;
    queueMicrotask(() => {
      this.isDue = false;
      this.renew();
    });
  }

  private renew(): void {
    const topics = this.isSeen() ? [...this.followers.keys()].sort() : [];
    const path = topics.map((page) => searchOf({ page })).join("&");
    if (path === this.followed) return;
    this.close?.();
    this.close = null;
    this.followed = path;
    if (path === "") return;
    this.close = this.open(`v1/live?${path}`, {
      onEvent: (event) => this.tell(event.name, event.data),
      onState: (state) => {
        for (const one of this.all()) one.onState(state);
      },
    });
  }

  private tell(name: string, data: string): void {
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    for (const [topic, followers] of this.followers) {
      if (nameOf(topic) === name) for (const one of [...followers]) one.onValue(value);
    }
  }

  private all(): Follower[] {
    return [...this.followers.values()].flatMap((followers) => [...followers]);
  }
}

/** The page of a topic: what stands before its query. */
export function nameOf(topic: string): string {
  return topic.split("?")[0]!;
}

let shared: LiveStream | null = null;

/** This tab's stream. */
export function live(): LiveStream {
  if (shared === null) {
    const stream = new LiveStream(listen, () => !document.hidden);
    document.addEventListener("visibilitychange", () => stream.renewSoon());
    shared = stream;
  }
  return shared;
}
