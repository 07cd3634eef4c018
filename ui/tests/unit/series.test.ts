// Stretches of time: never shorter than a minute, longer than 28 days, or in the future.
import { expect, test } from "vitest";
import {
  bounded,
  column,
  joined,
  moved,
  perSecond,
  stepFor,
  times,
  zoomed,
} from "../../src/chart/series";

const NOW = 1_800_000_000;

test("columns come by name, with gaps, and as rates", () => {
  const series = {
    step_s: 10,
    from_unix_s: 100,
    columns: ["requests", "errors"],
    rows: [[50, 1], null, [20, null]],
  };
  expect(times(series)).toEqual([100, 110, 120]);
  expect(column(series, "errors")).toEqual([1, null, null]);
  expect(perSecond(series, "requests")).toEqual([5, null, 2]);
  expect(column(series, "unknown")).toEqual([null, null, null]);
});

test("zooming stays within bounds and about its moment", () => {
  const hour = { from: NOW - 3600, to: NOW };
  expect(zoomed(hour, 0.5, NOW)).toEqual({ from: NOW - 2700, to: NOW - 900 });
  expect(zoomed(hour, 2, NOW).to).toBe(NOW);
  let stretch = hour;
  for (let times = 0; times < 20; times += 1) stretch = zoomed(stretch, 0.5, NOW);
  expect(stretch.to - stretch.from).toBeLessThanOrEqual(61);
  for (let times = 0; times < 40; times += 1) stretch = zoomed(stretch, 2, NOW);
  expect(stretch.to - stretch.from).toBe(28 * 86_400);
  expect(stretch.to).toBeLessThanOrEqual(NOW);
});

test("moving keeps the length and stops at now", () => {
  const old = { from: NOW - 7200, to: NOW - 3600 };
  expect(moved(old, 0.25, NOW)).toEqual({ from: NOW - 6300, to: NOW - 2700 });
  expect(moved(old, 5, NOW)).toEqual({ from: NOW - 3600, to: NOW });
  expect(bounded({ from: NOW, to: NOW + 99 }, NOW)).toEqual({ from: NOW - 60, to: NOW });
});

test("steps are those that are kept", () => {
  expect(stepFor({ from: 0, to: 60 }, 480)).toBe(1);
  expect(stepFor({ from: 0, to: 3600 }, 480)).toBe(10);
  expect(stepFor({ from: 0, to: 28 * 86_400 }, 480)).toBe(7200);
});

test("newer rows take the place of those they overlap, and old ones fall off", () => {
  const series = (from: number, ...rows: (number | null)[]) => ({
    step_s: 10,
    from_unix_s: from,
    columns: ["requests"],
    rows: rows.map((row) => (row === null ? null : [row])),
  });
  const whole = series(100, 1, 2, null);
  expect(joined(whole, series(120, 3, 4), 0)).toEqual(series(100, 1, 2, 3, 4));
  expect(joined(whole, series(130, 4), 115)).toEqual(series(110, 2, null, 4));
  expect(joined(whole, series(100, 9, 9, 9), 0)).toEqual(series(100, 9, 9, 9));
  expect(joined(whole, series(110, 9), 900)).toEqual(series(110, 9));
  for (const other of [series(140, 5), series(90, 5), series(125, 5)]) {
    expect(joined(whole, other, 0)).toBeNull();
  }
  expect(joined(whole, { ...series(120, 3), step_s: 60 }, 0)).toBeNull();
  expect(joined(whole, { ...series(120, 3), columns: ["errors"] }, 0)).toBeNull();
});
