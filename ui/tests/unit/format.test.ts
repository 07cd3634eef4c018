// Numbers as people read them.
import { expect, test } from "vitest";
import {
  NOTHING,
  ago,
  byName,
  bytes,
  clock,
  clockMs,
  cores,
  count,
  many,
  micros,
  percent,
  rate,
  seconds,
  short,
  words,
} from "../../src/text/format";

test("what is not known is a dash", () => {
  for (const format of [count, short, rate, bytes, micros, seconds, percent, cores, clock]) {
    expect(format(null)).toBe(NOTHING);
    expect(format(undefined)).toBe(NOTHING);
    expect(format(Number.NaN)).toBe(NOTHING);
  }
});

test.each([
  [0, "0 B"],
  [1023, "1\u202f023 B"],
  [1024, "1 KiB"],
  [1536, "1.50 KiB"],
  [10_240, "10 KiB"],
  [1_048_575, "1 MiB"],
  [64 * 1_048_576, "64 MiB"],
  [5e15, "4.44 PiB"],
])("%d bytes are %s", (value, text) => {
  expect(bytes(value)).toBe(text);
});

test.each([
  [0, "0 µs"],
  [870, "870 µs"],
  [1000, "1 ms"],
  [12_345, "12.3 ms"],
  [999_499, "999 ms"],
  [999_500, "1.00 s"],
  [1_240_000, "1.24 s"],
  [59_940_000, "59.9 s"],
  [125_000_000, "2 min 5 s"],
])("%d microseconds are %s", (value, text) => {
  expect(micros(value)).toBe(text);
});

test.each([
  [0, "0 s"],
  [59.4, "59 s"],
  [60, "1 min"],
  [3600, "1 h"],
  [12_000, "3 h 20 min"],
  [412_345, "4 d 18 h"],
])("%d seconds are %s", (value, text) => {
  expect(seconds(value)).toBe(text);
});

test("counts, rates and parts", () => {
  expect(count(1_203_882)).toBe("1\u202f203\u202f882");
  expect(count(-1234)).toBe("-1\u202f234");
  expect(short(12_345)).toBe("12.3 k");
  expect(short(999_900)).toBe("1.00 M");
  expect(rate(0.2)).toBe("0.20/s");
  expect(rate(1500)).toBe("1.50 k/s");
  expect(percent(0.9432)).toBe("94.3 %");
  expect(cores(0.25)).toBe("0.25");
  expect(many(1, "worker")).toBe("1 worker");
  expect(many(0, "entry", "entries")).toBe("0 entries");
});

test("a moment of another day has its day", () => {
  const at = new Date(2026, 10, 22, 14, 3, 9, 41).getTime();
  expect(clock(at, at + 1000)).toBe("14:03:09");
  expect(clockMs(at, at)).toBe("14:03:09.041");
  expect(clock(at, at + 86_400_000)).toBe("2026-11-22 14:03:09");
  expect(ago(at, at + 125_000)).toBe("2 min 5 s ago");
  expect(ago(at, at + 300)).toBe("just now");
});

test("units follow from names", () => {
  expect(byName("memory_bytes", 2048)).toBe("2 KiB");
  expect(byName("bytes_max", 2048)).toBe("2 KiB");
  expect(byName("total_us", 1500)).toBe("1.50 ms");
  expect(byName("uptime_s", 90)).toBe("1 min 30 s");
  expect(byName("requests_s", 90)).toBe("90/s");
  expect(byName("hit_ratio", 0.5)).toBe("50 %");
  expect(byName("count", 5)).toBe("5");
  expect(words("memory_bytes")).toBe("memory");
  expect(words("queue_wait_us")).toBe("queue wait");
});
