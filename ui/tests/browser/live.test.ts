// What the pages ask a real server for while they are open: one stream, and nothing again and again.
import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Place, at, browser, operator } from "./place";

let place: Place;
let chromium: Browser;

beforeAll(async () => {
  [place, chromium] = await Promise.all([Place.open(), browser()]);
});

afterAll(async () => {
  await chromium?.close();
  await place?.close();
});

const isLive = (request: Request): boolean => request.url().includes("/v1/live?");

/** Topics of a stream. */
const topics = (request: Request): string[] => new URL(request.url()).searchParams.getAll("page");

/** What a page asks the API for, and those streams that are still open. */
function watched(page: Page): { asked: string[]; streams: Set<Request> } {
  const found = { asked: [] as string[], streams: new Set<Request>() };
  page.on("request", (request) => {
    const path = new URL(request.url()).pathname;
    if (isLive(request)) found.streams.add(request);
    else if (path.startsWith("/v1/")) found.asked.push(path);
  });
  const gone = (request: Request): void => void found.streams.delete(request);
  page.on("requestfailed", gone);
  page.on("requestfinished", gone);
  return found;
}

test("each page that is live has one stream and asks for nothing beside it", async () => {
  const page = await operator(chromium, place);
  const found = watched(page);
  for (const [hash, wanted] of [
    ["running", ["running?limit=200"]],
    ["connections", ["connections?limit=200"]],
    ["programs", ["programs"]],
    ["routes", ["routes"]],
    ["statistics", ["statistics"]],
    ["overview", ["history?sort=slowest&limit=8&within=10m", "overview", "routes?limit=6"]],
  ] as const) {
    found.asked.length = 0;
    const begun = page.waitForRequest((request) => isLive(request));
    await at(page, `#/${hash}`);
    expect(topics(await begun)).toEqual(wanted);
    await page.locator("text=/^Asking for/").first().waitFor({ state: "hidden" });
    expect(await page.getByText("Cannot show").allTextContents()).toEqual([]);
    expect(found.asked).toEqual([]);
    await expect.poll(() => found.streams.size).toBe(1);
  }
  await page.context().close();
});

test("charts move on with what is pushed, without asking again", async () => {
  const page = await operator(chromium, place);
  const found = watched(page);
  const begun = page.waitForRequest((request) => isLive(request) && topics(request).length === 1);
  await at(page, "#/activity?range=1m");
  expect(topics(await begun)).toEqual(["activity?step=1&every=1"]);
  const lead = page.locator(".lead");
  const first = await lead.textContent();
  await expect.poll(() => lead.textContent(), { timeout: 10_000 }).not.toBe(first);
  // A second may be over before the stream begins: then what is missing is asked for again.
  found.asked.length = 0;
  const second = await lead.textContent();
  await expect.poll(() => lead.textContent(), { timeout: 10_000 }).not.toBe(second);
  expect(found.asked).toEqual([]);
  await page.context().close();
});

test("nothing is pushed to a tab that nobody sees", async () => {
  const page = await operator(chromium, place);
  const found = watched(page);
  const hide = (isHidden: boolean): Promise<void> =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  await at(page, "#/running");
  await expect.poll(() => found.streams.size).toBe(1);
  await hide(true);
  await expect.poll(() => found.streams.size).toBe(0);
  const begun = page.waitForRequest((request) => isLive(request));
  await hide(false);
  expect(topics(await begun)).toEqual(["running?limit=200"]);
  expect(found.streams.size).toBe(1);
  await page.context().close();
});
