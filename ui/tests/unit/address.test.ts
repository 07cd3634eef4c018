// What a page shows stands in its address, and comes back from it unchanged.
import { expect, test } from "vitest";
import { link, placeOf, searchOf } from "../../src/address";

test("the overview is where an address names no page", () => {
  for (const hash of ["", "#", "#/"]) {
    expect(placeOf(hash)).toEqual({ page: "overview", rest: "", query: {} });
  }
});

test("a filter survives the way through the address", () => {
  const query = { q: "a b&c=d#e?f/%", path: "/cgi-bin/*", status: "5xx", client: "2001:db8::1" };
  expect(placeOf(link("history", query))).toEqual({ page: "history", rest: "", query });
});

test("an id may hold anything", () => {
  const id = "1.2/3?x=#y%00";
  expect(placeOf(link("history", {}, id))).toEqual({ page: "history", rest: id, query: {} });
});

test("empty values are left out, true is 1", () => {
  expect(searchOf({ a: "", b: null, c: undefined, d: false, e: true, f: 0 })).toBe("e=1&f=0");
  expect(placeOf("#/watch?path=&client=x").query).toEqual({ client: "x" });
});

test("a broken escape is shown as it stands", () => {
  expect(placeOf("#/history/%E0%A4%A").rest).toBe("%E0%A4%A");
});

test("no address leads out of the page", () => {
  for (const text of ["javascript:alert(1)", "//evil.example", "https://evil.example/"]) {
    expect(link(text)).toMatch(/^#\//);
    expect(link("history", { q: text }, text)).toMatch(/^#\/history\//);
  }
});
