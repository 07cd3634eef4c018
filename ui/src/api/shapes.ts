// What the API answers. `answers` is made of the server's own types; what has none there yet is
// here. A field of these may be missing or null wherever the server does not know it.

export type {
  Alert,
  Connection,
  History,
  Overview,
  Quantiles,
  Request,
  Route,
  Series,
} from "./answers";

type Maybe<T> = T | null;

/** One process of a program. */
export interface Worker {
  pid: number;
  state: string;
  requests?: Maybe<number>;
  age_s?: Maybe<number>;
  memory_bytes?: Maybe<number>;
  /** What it has now, and for how long. */
  running?: Maybe<{ id: string; request: string; ms: number }[]>;
  cpu_us?: Maybe<number>;
}

/** What a program used in a span of time. */
export interface Used {
  seconds: number;
  requests: number;
  used_us: number;
  /** CPU time of one request, on the average. */
  request_us?: Maybe<number>;
}

/** A script that is started or forked for each request, as it ran today. */
export interface Script {
  file: string;
  interpreter?: Maybe<string>;
  requests: number;
  rate_s: number;
  /** CPU time of a run, on the average. */
  cpu_us: number;
  used_us: number;
  /** CPU time of a bare start of its interpreter. */
  start_cpu_us?: Maybe<number>;
  last_unix_ms?: Maybe<number>;
  /** What one rung up the ladder would save. */
  saves?: Maybe<{ to: string; cpu_us: number; cores: number }>;
  advice?: Maybe<string>;
  why_not?: Maybe<string>;
}

/** One program and its workers, or a route and its scripts. */
export interface Program {
  name: string;
  site?: Maybe<string>;
  route?: Maybe<string>;
  handler?: Maybe<string>;
  carrier?: Maybe<string>;
  /** What is started. */
  runs?: Maybe<string>;
  workers?: Worker[];
  min?: Maybe<number>;
  max?: Maybe<number>;
  queued?: Maybe<number>;
  busy?: Maybe<number>;
  restarts?: Maybe<number>;
  last_error?: Maybe<string>;
  advice?: Maybe<string>;
  cpu?: Maybe<{ minute: Used; hour: Used }>;
  requests_today?: Maybe<number>;
  rate_today_s?: Maybe<number>;
  scripts?: Maybe<Script[]>;
  /** Scripts that are not listed. */
  scripts_more?: Maybe<number>;
  /** Requests to scripts that are not told apart. */
  requests_others?: Maybe<number>;
}

/** One thing in the cache. */
export interface CacheEntry {
  path: string;
  bytes?: number;
  hits?: Maybe<number>;
  /** How much it is asked for of late, where hits are not counted. */
  heat?: Maybe<number>;
  site?: Maybe<string>;
  age_s?: number;
  state?: string;
}

/** One certificate. */
export interface Certificate {
  names: string[] | string;
  listener?: Maybe<string>;
  issuer?: Maybe<string>;
  not_before_unix_s?: Maybe<number>;
  not_after_unix_s?: Maybe<number>;
  days_left?: Maybe<number>;
  key?: Maybe<string>;
  source?: Maybe<string>;
  state?: Maybe<string>;
}

/** One log file. */
export interface Log {
  id: string | number;
  name: string;
  path?: Maybe<string>;
  bytes?: Maybe<number>;
}

/** The config as it stands on disk. */
export interface Config {
  files: ConfigFile[];
  generation?: number;
  editable?: boolean;
  why_not?: Maybe<string>;
  can_roll_back?: boolean;
}

/** One file of the config. */
export interface ConfigFile {
  path: string;
  text: string;
  /** What the server knows this text by, to refuse an edit of an older one. */
  hash?: string;
  /** The server serves by this very text. */
  in_force?: boolean;
  on_disk?: boolean;
}

/** Something wrong with a config, and where. */
export interface ConfigFault {
  file?: Maybe<string>;
  line?: Maybe<number>;
  column?: Maybe<number>;
  text: string;
}

/** One event of a watched request's life. */
export interface WatchEvent {
  t_us: number;
  id: string;
  stage: string;
  text?: string;
  [field: string]: unknown;
}

/** One thing that was done. */
export interface AuditEntry {
  unix_ms: number;
  who: string;
  from?: Maybe<string>;
  action: string;
  outcome?: Maybe<string>;
}

/** Who is here. */
export interface Session {
  role: "look" | "operate";
  user?: Maybe<string>;
  csrf_header?: string;
}
