// Every page, in a real browser, of a real server.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HOSTILE, Place, at, browser, complaints, operator } from "./place";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const PAGES = [
  ["overview", "Overview"],
  ["activity", "Activity"],
  ["activity?range=28d", "Activity"],
  ["running", "Running"],
  ["watch", "Watch"],
  ["watch?on=1", "Watch"],
  ["history", "History"],
  ["history?status=5xx&sort=slowest", "History"],
  ["routes", "Routes"],
  ["explain?method=GET&url=/cgi-bin/slow", "Explain"],
  ["access", "Access"],
  ["access?method=GET&url=/cgi-bin/slow&user=ann&from=192.0.2.7", "Access"],
  ["programs", "Programs"],
  ["cache", "Cache"],
  ["bans", "Bans"],
  ["connections", "Connections"],
  ["certificates", "Certificates"],
  ["logs", "Logs"],
  ["config", "Config"],
  ["environment", "Environment"],
  ["statistics", "Statistics"],
  ["audit", "Audit"],
  ["about", "Help"],
] as const;

let place: Place;
let chromium: Browser;

beforeAll(async () => {
  [place, chromium] = await Promise.all([Place.open(), browser()]);
  await place.get("/");
  await place.get("/cgi-bin/slow");
  await place.get("/cgi-bin/hostile");
  await place.get(`/${encodeURIComponent(HOSTILE)}?q=${encodeURIComponent("\u202e")}`, {
    "User-Agent": HOSTILE,
  });
  // Somebody is connected and has gone quiet, and somebody's request is under way.
  await place.hold("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await place.hold(
    `POST /cgi-bin/quick HTTP/1.1\r\nHost: a\r\nUser-Agent: ${HOSTILE}\r\nContent-Length: 9\r\n\r\nh`,
    false,
  );
});

afterAll(async () => {
  await chromium?.close();
  await place?.close();
});

describe.each([
  [1280, "light"],
  [1280, "dark"],
  [390, "light"],
  [390, "dark"],
] as const)("at %d pixels, %s", (width, colorScheme) => {
  let page: Page;
  let found: string[];

  beforeAll(async () => {
    const url = await place.anotherUrl();
    const context = await chromium.newContext({
      viewport: { width, height: 860 },
      colorScheme,
      // The script of axe is put in by the browser, not the page: the policy of the page stays.
      bypassCSP: false,
    });
    page = await context.newPage();
    found = complaints(page);
    await page.goto(url);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  afterAll(() => page?.context().close());

  test.each(PAGES)("%s shows itself", async (hash, title) => {
    await at(page, `#/${hash}`);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    await page.locator("text=/^Asking for/").first().waitFor({ state: "hidden" });
    expect(await page.getByText("Cannot show").allTextContents()).toEqual([]);
    expect(found).toEqual([]);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(overflow).toBe(0);
    await page.evaluate(AXE);
    const faults = await page.evaluate(async () => {
      const axe = (globalThis as unknown as { axe: { run(): Promise<{ violations: Fault[] }> } })
        .axe;
      const serious = ["serious", "critical"];
      return (await axe.run()).violations
        .filter((one) => serious.includes(one.impact))
        .map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" ")}`);
    });
    expect(faults).toEqual([]);
  });
});

interface Fault {
  id: string;
  impact: string;
  help: string;
  nodes: { html: string }[];
}

test("no text of visitors or scripts becomes markup", async () => {
  const page = await operator(chromium, place);
  for (const hash of ["overview", "history", "running", "logs", "watch?on=1", "routes"]) {
    await at(page, `#/${hash}`);
    await page.locator("text=/^Asking for/").first().waitFor({ state: "hidden" });
    expect(await page.evaluate(() => (globalThis as { ran?: number }).ran)).toBeUndefined();
    expect(await page.locator("main img, main script").count()).toBe(0);
  }
  await at(page, "#/history");
  await page.locator("a.target", { hasText: "onerror" }).first().click();
  await page.getByText("onerror=globalThis.ran=1", { exact: false }).first().waitFor();
  expect(await page.evaluate(() => (globalThis as { ran?: number }).ran)).toBeUndefined();
  await page.context().close();
});

test("who is connected, and where, is in the table of a real server", async () => {
  const site = new URL(await place.site());
  // One that stays: those of the tests before may have ended.
  const client = connect(Number(site.port), site.hostname);
  client.write(`GET / HTTP/1.1\r\nHost: ${site.host}\r\n\r\n`);
  await once(client, "data");
  const page = await operator(chromium, place);
  await at(page, "#/connections");
  const row = page.getByRole("row").filter({ hasText: site.host });
  await row.first().waitFor();
  expect(await row.first().textContent()).toContain("127.0.0.1 port");
  await page.context().close();
  client.destroy();
});
