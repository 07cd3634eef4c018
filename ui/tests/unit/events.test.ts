// Server-sent events, cut anywhere.
import { expect, test, vi } from "vitest";

vi.stubGlobal("location", new URL("http://127.0.0.1/"));
const { EventParser, backoffMs } = await import("../../src/api/events");

const TEXT =
  ': hello\nevent: line\ndata: "a"\n\nid: 3\r\ndata: one\r\ndata:two\r\n\r\nevent: x\n\ndata: 3\n\n';
const EVENTS = [
  { name: "line", data: '"a"' },
  { name: "message", data: "one\ntwo" },
  { name: "message", data: "3" },
];

test("events are the same however the stream is cut", () => {
  for (let size = 1; size <= TEXT.length; size += 1) {
    const found: unknown[] = [];
    const parser = new EventParser((event) => found.push(event));
    for (let at = 0; at < TEXT.length; at += size) parser.take(TEXT.slice(at, at + size));
    expect(found).toEqual(EVENTS);
  }
});

test("an event that has not ended is not given", () => {
  const found: unknown[] = [];
  new EventParser((event) => found.push(event)).take("data: half\n");
  expect(found).toEqual([]);
});

test("the wait doubles and has a bound", () => {
  expect([0, 1, 2, 3, 4, 5, 99].map(backoffMs)).toEqual([
    1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
  ]);
});
