// A request's time, laid out: phases fill the whole, and never leave it.
import { expect, test } from "vitest";
import { axisSteps, life, longest } from "../../src/chart/phases";

const places = (times: Parameters<typeof life>[0]): [string, number, number][] =>
  life(times).phases.map((phase) => [phase.name, phase.begin_us, phase.length_us]);

test("phases follow each other and the server has the rest", () => {
  const times = {
    total_us: 1000,
    client_body_us: 100,
    queue_us: 50,
    start_us: 40,
    program_us: 440,
    disk_wait_us: 10,
    client_take_us: 200,
    first_byte_us: 700,
  };
  expect(places(times)).toEqual([
    ["body", 0, 100],
    ["queue", 100, 50],
    ["start", 150, 40],
    ["program", 190, 400],
    ["disk", 590, 10],
    ["server", 600, 200],
    ["take", 800, 200],
  ]);
  expect(life(times)).toMatchObject({ firstByte_us: 700, doOverlap: false });
});

test("a plain file is the server's time alone", () => {
  expect(places({ total_us: 300 })).toEqual([["server", 0, 300]]);
});

test("overlapping phases stay inside and are said to overlap", () => {
  const of = life({ total_us: 1000, program_us: 900, client_take_us: 600 });
  expect(of.doOverlap).toBe(true);
  for (const phase of of.phases) {
    expect(phase.begin_us).toBeGreaterThanOrEqual(0);
    expect(phase.begin_us + phase.length_us).toBeLessThanOrEqual(1000);
  }
  expect(of.phases.map((phase) => phase.name)).toEqual(["program", "take"]);
});

test("nonsense is cut: a start longer than its program, negative and missing times", () => {
  expect(places({ total_us: 100, start_us: 90, program_us: 30, queue_us: -5 })).toEqual([
    ["start", 0, 30],
    ["server", 30, 70],
  ]);
  expect(life({ total_us: 100, first_byte_us: 900 }).firstByte_us).toBe(100);
  expect(life({ total_us: Number.NaN }).phases).toEqual([]);
  expect(longest(life({}))).toBeNull();
});

test("a running request is laid out by its age", () => {
  expect(places({ age_us: 500, total_us: null, queue_us: 500 })).toEqual([["queue", 0, 500]]);
});

test("the longest phase is found", () => {
  expect(longest(life({ total_us: 100, queue_us: 20, program_us: 70 }))?.name).toBe("program");
});

test("the axis has round steps", () => {
  expect(axisSteps(1_040_000, 4)).toEqual([0, 500_000, 1_000_000]);
  expect(axisSteps(970, 4)).toEqual([0, 500]);
  expect(axisSteps(0)).toEqual([0]);
  for (const total of [1, 7, 99, 12_345, 9.9e7]) {
    expect(axisSteps(total, 4).length).toBeLessThanOrEqual(5);
  }
});
