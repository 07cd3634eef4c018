// The filter of the history, between form, address and API.
import { expect, test } from "vitest";
import { link, placeOf } from "../../src/address";
import { FIELDS, historyPath, momentOf, typed } from "../../src/pages/history-query";
import { chosen } from "../../src/parts/filter";

test("what is typed goes through the address to the API", () => {
  const form = { q: " tea cups ", path: "/cgi-bin/*", status: "5xx", slower: "", sort: "slowest" };
  const address = link("history", chosen(FIELDS, form));
  expect(address).toBe("#/history?q=tea+cups&path=%2Fcgi-bin%2F*&status=5xx&sort=slowest");
  expect(historyPath(placeOf(address).query)).toBe(
    "v1/history?limit=100&q=tea+cups&path=%2Fcgi-bin%2F*&status=5xx&sort=slowest",
  );
});

test("keys that no field has are not passed on", () => {
  expect(historyPath({ on: "1", evil: "x" })).toBe("v1/history?limit=100");
});

test("older requests are asked for from the last one shown", () => {
  expect(historyPath({ status: "404" }, "1.2.3")).toBe(
    "v1/history?limit=100&status=404&before=1.2.3",
  );
});

test("moments are typed or Unix milliseconds, and shown as typed", () => {
  const at = new Date(2026, 10, 22, 14, 3, 0).getTime();
  expect(momentOf("2026-11-22 14:03")).toBe(at);
  expect(momentOf(String(at))).toBe(at);
  expect(momentOf("yesterday-ish")).toBeNull();
  expect(historyPath({ since: "2026-11-22 14:03" })).toBe(`v1/history?limit=100&since=${at}`);
  expect(historyPath({ since: "no moment" })).toBe("v1/history?limit=100");
  expect(typed({ since: String(at), q: "x" })).toEqual({ since: "2026-11-22 14:03:00", q: "x" });
});
