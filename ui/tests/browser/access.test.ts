// Who may what, and requests that are tried, in a real browser with a real server.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CONFIG, HOSTILE, Place, at, browser, complaints, operator } from "./place";

/** Beside the routes that every test has: one for some addresses, one for some users. */
const RULES = `[[site.route]]
path = "/office/*"
files = "site"
access = { allow = ["10.0.0.0/8"], methods = ["GET"] }

[[site.route]]
path = "/app/*"
files = "site"
require = { auth = "sso", users = ["ann"], groups = ["lab"] }

[[site.route]]
path = "/verify"
internal = true
respond = { status = 204 }

[[auth]]
name = "sso"
forward = { path = "/verify" }
`;

let place: Place;
let chromium: Browser;
let page: Page;
let found: string[];

beforeAll(async () => {
  [place, chromium] = await Promise.all([Place.open(CONFIG + RULES), browser()]);
  page = await operator(chromium, place);
  found = complaints(page);
});

afterAll(async () => {
  expect(found).toEqual([]);
  await chromium?.close();
  await place?.close();
});

test("a table says who may what, and a form which rows are shown", async () => {
  await at(page, "#/access");
  const table = page.getByRole("region", { name: "Who may what" });
  const row = (path: string) => table.getByRole("row").filter({ hasText: path });
  await row("/office/*").getByText("who comes from 10.0.0.0/8, with GET, HEAD").waitFor();
  await row("/app/*").getByText("ann and members of lab signed in to sso").waitFor();
  expect(await row("/verify").textContent()).toContain("only other routes");
  expect(await row("/office/*").textContent()).toMatch(/hob\.toml:\d+/);
  await page.locator("select[name=show]").selectOption("closed");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("3 of 5 routes").waitFor();
  expect(await row("/cgi-bin/*").count()).toBe(0);
  await page.getByRole("textbox", { name: "Find" }).fill("nobody like that");
  await page.getByRole("textbox", { name: "Find" }).press("Enter");
  await page.getByText("No route is as you look for it.").waitFor();
});

test("a request is tried, and the line that decides is named", async () => {
  await at(page, "#/access");
  await page.getByRole("link", { name: "/office/*" }).click();
  expect(await page.getByLabel("URL").inputValue()).toBe("/office/");
  const from = page.getByLabel("From address");
  await from.fill("192.0.2.7");
  await from.press("Enter");
  const outcome = page.locator(".verdict .alert");
  await outcome.getByText("Refused: 403 Forbidden").waitFor();
  const told = await outcome.textContent();
  expect(told).toContain("access.allow decides: hob.toml:");
  expect(told).toContain("it does not have 192.0.2.7");
  await from.fill("10.1.2.3");
  await page.getByRole("button", { name: "Try" }).click();
  await outcome.getByText("Answered by files with 200 OK").waitFor();
  // What is tried stands in the address.
  expect(page.url()).toContain("from=10.1.2.3");
});

test("a user is tried without a password, in groups that one supposes", async () => {
  await at(page, "#/access?method=GET&url=/app/");
  const outcome = page.locator(".verdict .alert");
  await outcome.getByText("Provided that the route of /verify").waitFor();
  await page.getByLabel("User").fill("eve");
  await page.getByLabel("In groups").fill("tea");
  await page.getByRole("button", { name: "Try" }).click();
  await outcome.getByText("Refused: 403 Forbidden").waitFor();
  await page.getByLabel("In groups").fill("tea, lab");
  await page.getByRole("button", { name: "Try" }).click();
  await outcome.getByText("Answered by files with 200 OK").waitFor();
  expect(await outcome.textContent()).toContain('says that they are "eve", in tea, lab');
});

test("what is no request is said, and what is hostile is text", async () => {
  await at(page, "#/access");
  await page.getByLabel("URL").fill("office/plan.html");
  await page.getByRole("button", { name: "Try" }).click();
  await page.getByText("is neither a path nor a URL").waitFor();
  // The browser tells of each answer that refuses.
  expect(found.splice(0).every((one) => one.includes("400"))).toBe(true);
  await page.getByLabel("URL").fill(`/app/${HOSTILE}`);
  await page.getByLabel("User").fill(HOSTILE);
  await page.getByRole("button", { name: "Try" }).click();
  await page.locator(".verdict").getByText("onerror=globalThis.ran=1").first().waitFor();
  expect(await page.evaluate(() => (globalThis as { ran?: number }).ran)).toBeUndefined();
  expect(await page.locator("main img, main script").count()).toBe(0);
});

test("who may only look may try, and the key leads there", async () => {
  const context = await chromium.newContext();
  const other = await context.newPage();
  await other.goto(new URL("/", await place.adminUrl()).href);
  await other.getByLabel("User").fill("ben");
  await other.getByLabel("Password").fill("kettle");
  await other.getByRole("button", { name: "Log in" }).click();
  await other.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await other.keyboard.press("g");
  await other.keyboard.press("m");
  await other.getByRole("heading", { level: 1, name: "Access" }).waitFor();
  await other.locator("#page-title:focus").waitFor();
  await other.keyboard.press("/");
  await other.keyboard.type("/office/");
  await other.keyboard.press("Enter");
  await other.locator(".verdict .alert").getByText("Answered by files with 200 OK").waitFor();
  await context.close();
});

test("the routes lead to who may ask for them", async () => {
  await place.get("/office/index.html");
  await at(page, "#/routes");
  await page.getByRole("link", { name: "Who may /office/*" }).click();
  await page.getByText("1 of 5 routes").waitFor();
});
