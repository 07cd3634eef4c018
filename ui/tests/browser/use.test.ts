// What people do with the pages, in a real browser with a real server.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { CONFIG, Place, at, browser, complaints, operator } from "./place";

let place: Place;
let chromium: Browser;
let page: Page;

beforeAll(async () => {
  [place, chromium] = await Promise.all([Place.open(), browser()]);
});

afterAll(async () => {
  await chromium?.close();
  await place?.close();
});

beforeEach(async () => {
  page = await operator(chromium, place);
});

afterEach(() => page.context().close());

test("the token of the printed URL logs in once and leaves the address", async () => {
  const url = await place.anotherUrl();
  const context = await chromium.newContext();
  const first = await context.newPage();
  await first.goto(url);
  await first.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  expect(first.url()).not.toContain("token");
  expect(await first.evaluate(() => document.cookie)).toBe("");
  const second = await (await chromium.newContext()).newPage();
  await second.goto(url);
  await second.getByRole("button", { name: "Log in" }).waitFor();
  expect(await second.getByRole("alert").textContent()).not.toBe("");
  expect(second.url()).not.toContain("token");
  await second.context().close();
  await context.close();
});

test("who logs in by password may look, and is told why nothing can be done", async () => {
  const context = await chromium.newContext();
  const other = await context.newPage();
  await other.goto(new URL("/", await place.adminUrl()).href);
  await other.getByLabel("User").fill("ben");
  await other.getByLabel("Password").fill("kettle");
  await other.getByRole("button", { name: "Log in" }).click();
  await other.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await at(other, "#/cache");
  const purge = other.getByRole("button", { name: "Purge everything" });
  expect(await purge.getAttribute("aria-disabled")).toBe("true");
  expect(await purge.getAttribute("title")).toContain("may look");
  await purge.click({ force: true });
  expect(await other.getByRole("dialog").count()).toBe(0);
  await context.close();
});

test("a slow script is found from the overview in three clicks", async () => {
  await place.get("/cgi-bin/slow");
  await page.reload();
  await page.getByRole("link", { name: /^Slow end/ }).click();
  await page.getByRole("link", { name: "/cgi-bin/*" }).first().click();
  await page
    .getByRole("link", { name: /\/cgi-bin\/slow/ })
    .first()
    .click();
  await page.getByRole("heading", { name: "One request" }).waitFor();
  expect(await page.locator(".waterfall .most th").textContent()).toBe("program works");
  expect(await page.locator(".request-line").textContent()).toContain("/cgi-bin/slow");
});

test("the history's filter stands in the address and going back undoes it", async () => {
  await place.get("/no-such-page-here");
  await at(page, "#/history");
  await page.getByLabel("Search").fill("no-such-page");
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForURL(/#\/history\?q=no-such-page$/);
  await page
    .getByRole("link", { name: /no-such-page-here/ })
    .first()
    .waitFor();
  await page.goBack();
  await page.waitForURL(/#\/history$/);
  expect(await page.getByLabel("Search").inputValue()).toBe("");
});

test("watching shows a request step by step, pauses, and can be downloaded", async () => {
  await at(page, "#/watch?path=/cgi-bin/*&head=1");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Waiting for a request that matches").waitFor();
  const events = page.locator(".event");
  await expect
    .poll(async () => {
      await place.get("/cgi-bin/slow");
      return events.count();
    })
    .toBeGreaterThan(2);
  await page.getByRole("button", { name: "Pause" }).click();
  const count = await events.count();
  await place.get("/cgi-bin/slow");
  await page.getByText(/paused, [1-9].* more since/).waitFor();
  expect(await events.count()).toBe(count);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download JSON" }).click(),
  ]);
  const saved = JSON.parse(readFileSync(await download.path(), "utf8")) as { stage: string }[];
  expect(saved).toHaveLength(count);
});

test("the cache is purged after a question", async () => {
  await place.get("/");
  await at(page, "#/cache");
  await page.getByRole("button", { name: "Purge everything" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  expect(await page.locator(".alert.good").count()).toBe(0);
  await page.getByRole("button", { name: "Purge everything" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Purge everything" }).click();
  await page.locator(".alert.good").waitFor();
  await at(page, "#/audit");
  await page.locator("td", { hasText: "cache/purge" }).first().waitFor();
});

test("a config is checked, compared, applied and rolled back", async () => {
  const path = join(place.folder, "hob.toml");
  const before = readFileSync(path, "utf8");
  await at(page, "#/config");
  const text = page.getByRole("textbox", { name: /^Text of/ });
  await text.fill(before.replace("cgi = ", "cgj = "));
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("This config would be refused").waitFor();
  await page
    .getByRole("button", { name: /^line \d+/ })
    .first()
    .click();
  await text.fill(`${before}\n# Changed on the page.\n`);
  await page.getByRole("button", { name: "Show changes" }).click();
  await page.locator(".diff .added", { hasText: "Changed on the page" }).waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
  await expect.poll(() => readFileSync(path, "utf8")).toContain("# Changed on the page.");
  await page.getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await expect.poll(() => readFileSync(path, "utf8")).toBe(before);
});

test("what may not be changed on the page is saved and applied by the command it shows", async () => {
  const fixed = await Place.open(CONFIG.replace("edit = true", "edit = false"));
  const path = join(fixed.folder, "hob.toml");
  const visitor = await operator(chromium, fixed);
  await at(visitor, "#/config");
  await visitor.getByRole("status").getByText("`edit = true` in `[admin]` would").waitFor();
  const changed = `${readFileSync(path, "utf8")}\n# Changed by command.\n`;
  await visitor.getByRole("textbox", { name: /^Text of/ }).fill(changed);
  await visitor.getByRole("button", { name: "Show changes" }).click();
  await visitor.locator(".diff .added", { hasText: "Changed by command" }).waitFor();
  expect(await visitor.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
  const saving = visitor.waitForEvent("download");
  await visitor.getByRole("button", { name: "Save as new.toml" }).click();
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe("new.toml");
  await saved.saveAs(join(fixed.folder, "new.toml"));
  expect(readFileSync(join(fixed.folder, "new.toml"), "utf8")).toBe(changed);
  const shown = await visitor.getByLabel("Command that applies it").textContent();
  const [program, ...words] = shown!.trim().split(" ");
  expect(program).toBe("hob");
  const { child, printed } = fixed.run(words);
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect([code, printed.text]).toEqual([0, expect.stringContaining("generation 2")]);
  expect(readFileSync(path, "utf8")).toBe(changed);
  await visitor.context().close();
  await fixed.close();
});

test("explain says which route answers", async () => {
  await at(page, "#/explain");
  await page.getByLabel("URL").fill("/cgi-bin/slow");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByLabel("Explanation").filter({ hasText: "/cgi-bin/*" }).waitFor();
});

test("new lines of a log show themselves", async () => {
  await at(page, "#/logs");
  await page.getByLabel("Lines of the log").waitFor();
  await expect
    .poll(async () => {
      await place.get("/fresh-line-of-log");
      return page.locator(".log .line", { hasText: "fresh-line-of-log" }).count();
    })
    .toBeGreaterThan(0);
});

test("keys go to pages, rows and fields, and can be switched off", async () => {
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.waitForURL(/#\/history$/);
  await page.locator("input[name=q]").waitFor();
  // A page that is gone to gets the focus once it is drawn.
  await page.locator("#page-title:focus").waitFor();
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("q");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.waitForURL(/#\/about$/);
  await page.getByRole("button", { name: "Keys are on" }).click();
  await page.locator("#page-title").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  expect(page.url()).toMatch(/#\/about$/);
});

test("charts move and zoom by keys, and have a table", async () => {
  await at(page, "#/activity?range=1h");
  const charts = page.locator(".charts");
  await charts.waitFor();
  await charts.focus();
  await page.keyboard.press("+");
  await page.waitForURL(/from=\d+&to=\d+/);
  const first = new URLSearchParams(page.url().split("?")[1]);
  expect(Number(first.get("to")) - Number(first.get("from"))).toBe(1800);
  await page.locator(".charts").focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForURL((url) => !url.href.includes(`to=${first.get("to")}`));
  await page.getByRole("button", { name: "Show" }).click();
  await page
    .getByRole("region", { name: "Activity" })
    .or(page.getByText("Nothing was recorded"))
    .first()
    .waitFor();
});

test("a page is painted before its data has come", async () => {
  await page.route("**/v1/**", (route) => route.abort());
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "hob" }).waitFor();
  const paints = () => performance.getEntriesByName("first-contentful-paint").length;
  await expect.poll(() => page.evaluate(paints)).toBe(1);
});

test("nothing is asked of anyone else", async () => {
  const hosts = new Set<string>();
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  await page.reload();
  await at(page, "#/activity");
  expect([...hosts]).toEqual([new URL(page.url()).host]);
});

test("a server that is gone is said to be gone, and since when", async () => {
  const other = await Place.open();
  const watching = await operator(chromium, other);
  await other.stop();
  await watching.getByText(/The server does not answer since \d\d:\d\d:\d\d/).waitFor();
  await watching.context().close();
  await other.close();
});

test("what a program that stays is busy with is on the page of programs", async () => {
  const route = '[[site.route]]\npath = "/kept"\nresident = { wsgi = "kept:application" }\n';
  const other = await Place.open(CONFIG + route);
  await other.hold("POST /kept HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nh", false);
  const looking = await operator(chromium, other);
  const complained = complaints(looking);
  await at(looking, "#/programs");
  const row = looking.getByRole("row").filter({ hasText: "busy" });
  await row.getByText("POST /kept").waitFor();
  expect(await row.textContent()).toMatch(/ for [0-9.]+ /);
  expect(complained).toEqual([]);
  await looking.context().close();
  await other.close();
});

test("visits are told of, and ended", async () => {
  const route = '[[site.route]]\npath = "/shop/*"\nsession = { python = "shop.py" }\n';
  const other = await Place.open(CONFIG + route);
  const begin = async (): Promise<string> => {
    const response = await fetch(`${await other.site()}/shop/`);
    return response.text();
  };
  const handle = await begin();
  const looking = await operator(chromium, other);
  const complained = complaints(looking);
  await at(looking, "#/programs");
  const panel = looking.locator("section.panel", { hasText: "/shop/*" });
  await panel.getByText("stays for one visitor").waitFor();
  const row = panel.locator("tbody tr");
  await row.getByText(`${handle.slice(1, 5)}...`).waitFor();
  expect(await other.get(`/shop/${handle}/`)).toBe(200);
  await row.getByRole("button", { name: "End" }).click();
  await looking.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await looking.getByText(/visit \d+ ends/).waitFor();
  await panel.getByText("Nobody visits it.").waitFor();
  expect(await other.get(`/shop/${handle}/`)).toBe(410);
  expect(complained).toEqual([]);
  await looking.context().close();
  await other.close();
});

test("visits that a server from before an upgrade keeps are told of, and ended", async () => {
  const route = '[[site.route]]\npath = "/shop/*"\nsession = { python = "shop.py" }\n';
  const other = await Place.open(CONFIG + route);
  // On a connection of its own: one that is kept leads to the server before.
  const own = { headers: { Connection: "close" } };
  const begin = async (): Promise<string> => {
    const response = await fetch(`${await other.site()}/shop/`, own);
    return response.text();
  };
  const [first, second] = [await begin(), await begin()];
  await other.upgrade();
  let later = await begin();
  const looking = await operator(chromium, other);
  const complained = complaints(looking);
  await at(looking, "#/programs");
  const old = looking.locator("section.panel", { hasText: "of before an upgrade" });
  const rows = old.locator("tbody tr");
  const row = (handle: string): Locator => rows.filter({ hasText: `${handle.slice(1, 5)}...` });
  await row(first).waitFor();
  // What connects while the server before stops listening may still come to that one.
  let before = 2;
  for (;;) {
    await looking.getByText(`${later.slice(1, 5)}...`).waitFor();
    if ((await row(later).count()) === 0) break;
    before++;
    later = await begin();
  }
  expect(await rows.count()).toBe(before);
  await row(first).getByRole("button", { name: "End" }).click();
  await looking.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await looking.getByText(/visit \d+ ends/).waitFor();
  await row(first).waitFor({ state: "hidden" });
  expect(await rows.count()).toBe(before - 1);
  expect(await other.get(`/shop/${first}/`)).toBe(410);
  expect(await other.get(`/shop/${second}/`)).toBe(200);
  expect(await other.get(`/shop/${later}/`)).toBe(200);
  expect(complained).toEqual([]);
  await looking.context().close();
  await other.close();
});

test("a program that is run to be asked is told of, and recycled", async () => {
  const route =
    '[[site.route]]\npath = "/asked/*"\nscgi = { run = ["python3", "../asked.py"], children = 1 }\n';
  const other = await Place.open(CONFIG + route);
  expect(await other.get("/asked/x")).toBe(200);
  const looking = await operator(chromium, other);
  const complained = complaints(looking);
  await at(looking, "#/programs");
  const panel = looking.locator("section.panel", { hasText: "/asked/* scgi" });
  await panel.getByText("ready").waitFor();
  const told = async (name: string): Promise<string> =>
    (await panel.locator(".pairs div", { hasText: name }).locator("dd").textContent()) ?? "";
  const first = await told("processes");
  expect(first).toMatch(/^\d+$/);
  await panel.getByRole("button", { name: "Recycle" }).click();
  await looking.getByRole("dialog").getByRole("button", { name: "Recycle" }).click();
  await expect.poll(() => told("processes"), { timeout: 20_000 }).not.toContain(first);
  expect(await told("started")).toBe("2 times");
  expect(await other.get("/asked/x")).toBe(200);
  expect(complained).toEqual([]);
  await looking.context().close();
  await other.close();
});

test("what a script costs and one rung up would save is on the page of programs", async () => {
  for (let run = 0; run < 22; run += 1) await place.get("/cgi-bin/quick");
  await at(page, "#/programs");
  const table = page.getByRole("region", { name: "Scripts of /cgi-bin/* cgi" });
  const row = table.locator("tr", { hasText: "quick" });
  await row.getByText("Written to stay (resident), quick would save up to").waitFor();
  expect(await row.textContent()).toContain("for a bare start of sh");
  expect(await page.getByRole("status").filter({ hasText: "Measured:" }).count()).toBe(1);
  // What is started for each request has nobody to recycle.
  expect(await page.getByRole("button", { name: "Recycle" }).count()).toBe(0);
});
