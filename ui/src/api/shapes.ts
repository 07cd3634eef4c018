// What the API answers, as docs/src/how-to/admin.md describes it. A field may be missing or null
// wherever the server does not know it; pages never rely on one being there.

type Maybe<T> = T | null;

/** One request, running or finished. */
export interface Request {
  id: string;
  started_unix_ms: number;
  client: string;
  client_port?: Maybe<number>;
  client_name?: Maybe<string>;
  method: string;
  target: string;
  host?: Maybe<string>;
  protocol?: Maybe<string>;
  tls_version?: Maybe<string>;
  tls_handshake?: Maybe<string>;
  handshake_us?: Maybe<number>;
  status?: Maybe<number>;
  site?: Maybe<string>;
  route?: Maybe<string>;
  handler?: Maybe<string>;
  cache?: Maybe<string>;
  outcome?: Maybe<string>;
  fault?: Maybe<string>;
  reason?: Maybe<string>;
  detail?: Maybe<string>;
  note?: Maybe<string>;
  user_agent?: Maybe<string>;
  referer?: Maybe<string>;
  user?: Maybe<string>;
  bytes_in?: Maybe<number>;
  head_bytes_out?: Maybe<number>;
  body_bytes_out?: Maybe<number>;
  queue_us?: Maybe<number>;
  start_us?: Maybe<number>;
  program_us?: Maybe<number>;
  cpu_us?: Maybe<number>;
  disk_wait_us?: Maybe<number>;
  client_take_us?: Maybe<number>;
  client_body_us?: Maybe<number>;
  first_byte_us?: Maybe<number>;
  total_us?: Maybe<number>;
  server_us?: Maybe<number>;
  rtt_us?: Maybe<number>;
  retransmits?: Maybe<number>;
  window_bytes?: Maybe<number>;
  verdict?: Maybe<string>;
  trace_id?: Maybe<string>;
  state?: Maybe<string>;
  age_us?: Maybe<number>;
  worker_pid?: Maybe<number>;
}

/** Something an operator should know, in words. */
export interface Alert {
  level: "notice" | "warning" | "bad";
  text: string;
  since_unix_ms?: Maybe<number>;
  page?: Maybe<string>;
}

/** Columns over time; a row is null where nothing was recorded. */
export interface Series {
  step_s: number;
  from_unix_s: number;
  columns: string[];
  rows: Maybe<Maybe<number>[]>[];
}

/** The numbers of the moment. */
export interface Overview {
  now_unix_ms: number;
  version?: string;
  uptime_s?: number;
  generation?: number;
  hostname?: string;
  rate?: { requests_s?: number; errors_s?: number; bytes_in_s?: number; bytes_out_s?: number };
  latency?: Quantiles & { count?: number };
  running?: number;
  connections_open?: number;
  workers?: {
    busy?: number;
    idle?: number;
    starting?: number;
    max?: number;
    queued?: number;
    queue_wait_p99_us?: number;
  };
  cache?: { entries?: number; bytes?: number; bytes_max?: number; hit_ratio?: Maybe<number> };
  memory?: { server_bytes?: number; programs_bytes?: number };
  cpu?: { server_cores?: number; programs_cores?: number; machine_cores?: number };
  alerts?: Alert[];
  seconds?: Series;
}

/** How times are spread, in microseconds. */
export interface Quantiles {
  p50_us?: Maybe<number>;
  p90_us?: Maybe<number>;
  p99_us?: Maybe<number>;
  max_us?: Maybe<number>;
  mean_us?: Maybe<number>;
}

/** One route and how it does. */
export interface Route {
  site: string;
  route: string;
  handler: string;
  class?: Maybe<string>;
  program?: Maybe<string>;
  requests: number;
  errors: number;
  bytes_out: number;
  rate_s: number;
  total?: Maybe<Quantiles>;
  first_byte?: Maybe<Quantiles>;
  queue?: Maybe<Quantiles>;
  start?: Maybe<Quantiles>;
  cpu?: Maybe<Quantiles>;
  last_unix_ms?: Maybe<number>;
}

/** Finished requests that were asked for. */
export interface History {
  requests: Request[];
  kept?: number;
  kept_bytes?: number;
  oldest_unix_ms?: Maybe<number>;
  scanned?: number;
  more?: boolean;
  /** What to ask for the next ones before. */
  next?: Maybe<string>;
  /** The search ended before it had looked at everything. */
  cut?: boolean;
}

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

/** One open connection. */
export interface Connection {
  number: number;
  /** None over a Unix socket. */
  client: Maybe<string>;
  client_port?: Maybe<number>;
  protocol?: Maybe<string>;
  tls_version?: Maybe<string>;
  tls_suite?: Maybe<string>;
  /** The server's address that it came to; none over a Unix socket. */
  listener?: Maybe<string>;
  opened_unix_ms?: Maybe<number>;
  requests?: Maybe<number>;
  bytes_in?: Maybe<number>;
  bytes_out?: Maybe<number>;
  state?: Maybe<string>;
  rtt_us?: Maybe<number>;
  retransmits?: Maybe<number>;
  window_bytes?: Maybe<number>;
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
