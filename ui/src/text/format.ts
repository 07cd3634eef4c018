// Numbers as people read them: with a unit, three digits that matter, and a dash where nothing is
// known. All of it is pure; the time zone is the browser's.

/** What stands where a number is not known. */
export const NOTHING = "–";

type Maybe = number | null | undefined;

/** A count, with thin spaces between thousands: `12 345`. */
export function count(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A count that has to be short: `12.3 k`. */
export function short(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  return scaled(value, 1000, ["", "k", "M", "G", "T"]);
}

/** Something per second: `12.3/s`. */
export function rate(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  return `${scaled(value, 1000, ["", "k", "M", "G"])}/s`;
}

/** Bytes, by 1024: `12.3 KiB`. */
export function bytes(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
}

/** Bytes per second. */
export function bytesRate(value: Maybe): string {
  return isNumber(value) ? `${bytes(value)}/s` : NOTHING;
}

/** A duration in microseconds: `870 µs`, `12.3 ms`, `1.24 s`, `2 min 5 s`. */
export function micros(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  if (value < 1000) return `${digits(value)} µs`;
  if (value < 999_500) return `${digits(value / 1000)} ms`;
  if (value < 60_000_000) return `${digits(value / 1e6)} s`;
  return seconds(value / 1e6);
}

/** A duration in seconds, at most two units: `45 s`, `2 min 5 s`, `3 h 20 min`, `12 d 4 h`. */
export function seconds(value: Maybe): string {
  if (!isNumber(value)) return NOTHING;
  const whole = Math.max(0, Math.round(value));
  if (whole < 60) return `${whole} s`;
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const at = units.findIndex(([size]) => whole >= size);
  const [size, name] = units[at]!;
  const [lower, lowerName] = units[at + 1]!;
  const rest = Math.floor((whole % size) / lower);
  return `${Math.floor(whole / size)} ${name}${rest > 0 ? ` ${rest} ${lowerName}` : ""}`;
}

/** A part of one: `12.3 %`. */
export function percent(part: Maybe): string {
  return isNumber(part) ? `${digits(part * 100)} %` : NOTHING;
}

/** Cores in use: `0.25`. */
export function cores(value: Maybe): string {
  return isNumber(value) ? value.toFixed(value < 10 ? 2 : 1) : NOTHING;
}

/** A moment as the clock on the wall, with the day when it is not today: `12:03:09`. */
export function clock(unixMs: Maybe, now = Date.now()): string {
  if (!isNumber(unixMs)) return NOTHING;
  const at = new Date(unixMs);
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return at.toDateString() === new Date(now).toDateString() ? time : `${day(unixMs)} ${time}`;
}

/** The same with milliseconds. */
export function clockMs(unixMs: Maybe, now = Date.now()): string {
  if (!isNumber(unixMs)) return NOTHING;
  return `${clock(unixMs, now)}.${String(Math.floor(unixMs) % 1000).padStart(3, "0")}`;
}

/** A day: `2026-11-22`. */
export function day(unixMs: Maybe): string {
  if (!isNumber(unixMs)) return NOTHING;
  const at = new Date(unixMs);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** How long ago: `12 s ago`. */
export function ago(unixMs: Maybe, now = Date.now()): string {
  if (!isNumber(unixMs) || unixMs === 0) return NOTHING;
  const since = (now - unixMs) / 1000;
  return since < 1 ? "just now" : `${seconds(since)} ago`;
}

/** One of something, or many: `1 worker`, `3 workers`. */
export function many(number: Maybe, one: string, more = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : more}`;
}

/** A value by the unit its name ends in: `memory_bytes`, `age_s`, `total_us`, `at_unix_ms`. */
export function byName(name: string, value: number): string {
  if (name.endsWith("_unix_ms")) return `${day(value)} ${clock(value, value)}`;
  if (name.endsWith("_unix_s")) return `${day(value * 1000)} ${clock(value * 1000, value * 1000)}`;
  if (/(^|_)bytes(_max|_min|_limit)?$/.test(name)) return bytes(value);
  if (name.endsWith("bytes_s")) return bytesRate(value);
  if (name.endsWith("_us")) return micros(value);
  if (name.endsWith("_ms")) return micros(value * 1000);
  if (/(uptime|age|after|time|timeout|for)_s$/.test(name)) return seconds(value);
  if (name.endsWith("_s")) return rate(value);
  if (name.endsWith("ratio") || name.endsWith("share")) return percent(value);
  return Number.isInteger(value) ? count(value) : digits(value);
}

/** A name as words: `memory_bytes` is `memory`. */
export function words(name: string): string {
  const bare = name.replace(/_(bytes|us|ms|unix_ms|unix_s|s)(_max|_min|_limit)?$/, "$2");
  return (bare === "" ? name : bare).replaceAll("_", " ");
}

function isNumber(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** Three digits that matter. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95 || Number.isInteger(value)) return count(Math.round(value));
  return value.toFixed(size >= 9.995 ? 1 : size >= 0.0995 || size === 0 ? 2 : 3);
}

function scaled(value: number, base: number, units: string[]): string {
  let at = 0;
  let left = value;
  // 999.5 would be shown as 1000 of the smaller unit.
  while (Math.abs(left) >= base * 0.9995 && at < units.length - 1) {
    left /= base;
    at += 1;
  }
  return `${digits(left)} ${units[at] ?? ""}`.trimEnd();
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
