// Columns over time, as the server sends them, made ready for charts and tables.
import type { Series } from "../api/answers";

/** Times (Unix seconds) and the values of one column; null where nothing was recorded. */
export interface Line {
  times: number[];
  values: (number | null)[];
}

/** The moments of a series, Unix seconds. */
export function times(series: Series): number[] {
  return series.rows.map((_, index) => series.from_unix_s + index * series.step_s);
}

/** One column; all null when the server has no such column. */
export function column(series: Series, name: string): (number | null)[] {
  const at = series.columns.indexOf(name);
  return series.rows.map((row) => (row === null || at < 0 ? null : (row[at] ?? null)));
}

/** A column of sums over each step as a rate per second. */
export function perSecond(series: Series, name: string): (number | null)[] {
  const step = Math.max(series.step_s, 1);
  return column(series, name).map((value) => (value === null ? null : value / step));
}

/**
 * A series and newer rows of it, which may overlap: rows before `from` fall off. Null where the two
 * do not fit together: other steps, or a gap between them.
 */
export function joined(series: Series, newer: Series, from: number): Series | null {
  const step = series.step_s;
  const end = series.from_unix_s + series.rows.length * step;
  const shift = (newer.from_unix_s - series.from_unix_s) / step;
  const isOther = newer.step_s !== step || newer.columns.join() !== series.columns.join();
  if (isOther || newer.from_unix_s > end || shift < 0 || !Number.isInteger(shift)) return null;
  const rows = [...series.rows.slice(0, shift), ...newer.rows];
  const old = Math.max(
    0,
    Math.min(Math.floor((from - series.from_unix_s) / step), rows.length - 1),
  );
  return { ...series, from_unix_s: series.from_unix_s + old * step, rows: rows.slice(old) };
}

/** A stretch of time, Unix seconds. */
export interface Stretch {
  from: number;
  to: number;
}

/** Shortest and longest stretch that can be looked at. */
export const STRETCH_S_MIN = 60;
export const STRETCH_S_MAX = 28 * 86_400;

/** Stretches to choose from, by the word in the address. */
export const RANGES: [string, number, string][] = [
  ["1m", 60, "1 minute"],
  ["5m", 300, "5 minutes"],
  ["15m", 900, "15 minutes"],
  ["1h", 3600, "1 hour"],
  ["6h", 21_600, "6 hours"],
  ["24h", 86_400, "1 day"],
  ["7d", 604_800, "7 days"],
  ["28d", STRETCH_S_MAX, "28 days"],
];

/** Keeps a stretch within the shortest and longest, and out of the future. */
export function bounded(stretch: Stretch, now: number): Stretch {
  const to = Math.min(stretch.to, now);
  const length = Math.min(STRETCH_S_MAX, Math.max(STRETCH_S_MIN, to - stretch.from));
  return { from: Math.floor(to - length), to: Math.ceil(to) };
}

/** Nearer (`factor` below 1) or further about a moment; the middle when none is given. */
export function zoomed(stretch: Stretch, factor: number, now: number, about?: number): Stretch {
  const centre = about ?? (stretch.from + stretch.to) / 2;
  const length = Math.min(
    STRETCH_S_MAX,
    Math.max(STRETCH_S_MIN, (stretch.to - stretch.from) * factor),
  );
  const part = (centre - stretch.from) / Math.max(1, stretch.to - stretch.from);
  const to = Math.min(now, centre + length * (1 - part));
  return bounded({ from: to - length, to }, now);
}

/** The same length, `part` of it later. */
export function moved(stretch: Stretch, part: number, now: number): Stretch {
  const length = stretch.to - stretch.from;
  const to = Math.min(now, stretch.to + length * part);
  return bounded({ from: to - length, to }, now);
}

/** A step that gives about `points` rows, and one that the server keeps: seconds or minutes. */
export function stepFor(stretch: Stretch, points: number): number {
  const raw = (stretch.to - stretch.from) / points;
  const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];
  return steps.find((step) => step >= raw) ?? 86_400;
}
