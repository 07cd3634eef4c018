// The page of access, between what the API says, its forms and its address.
import { expect, test } from "vitest";
import { link, placeOf } from "../../src/address";
import type { RouteAccess, SiteAccess } from "../../src/api/answers";
import {
  SHOWN,
  TRIED,
  changed,
  labelOf,
  shownSites,
  triedPath,
  urlOf,
} from "../../src/pages/access-query";
import { chosen } from "../../src/parts/filter";

function route(path: string, more: Partial<RouteAccess> = {}): RouteAccess {
  return {
    index: 0,
    path,
    when: null,
    handler: "files",
    place: "hob.toml:9",
    internal: false,
    open: true,
    who: "everybody",
    access: null,
    sign_in: null,
    satisfy: null,
    limits: [],
    ...more,
  };
}

function site(names: string[], routes: RouteAccess[], more: Partial<SiteAccess> = {}): SiteAccess {
  return {
    site: names[0] ?? "*",
    names,
    place: `hob.toml:${names.length}`,
    down: false,
    https_only: false,
    requires_certificate: false,
    routes,
    ...more,
  };
}

const LAB = route("/lab/*", {
  open: false,
  who: "ann and members of lab signed in to staff",
  sign_in: { place: "hob.toml:12", auth: "staff", kind: "jwt", users: ["ann"], groups: ["lab"] },
});
const OFFICE = route("/office/*", { open: false, who: "who comes from 10.0.0.0/8" });
const SITES = [
  site(["a.test", "www.a.test"], [route("/*"), LAB]),
  site(["*.b.test"], [OFFICE]),
  site([], [route("/*", { when: "method POST" })]),
];

function paths(query: Record<string, string>): string[] {
  return shownSites(SITES, query).flatMap((one) =>
    one.routes.map((row) => `${one.site} ${labelOf(row)}`),
  );
}

test("what is tried goes through the address to the API, and nothing else does", () => {
  const form = { method: "GET", url: " http://a.test/lab/ ", user: "ann", groups: "lab", from: "" };
  const query = changed(TRIED, { q: "lab" }, chosen(TRIED, form));
  const address = link("access", query);
  expect(triedPath(placeOf(address).query)).toBe(
    "v1/explain?method=GET&url=http%3A%2F%2Fa.test%2Flab%2F&user=ann&groups=lab",
  );
  expect(placeOf(address).query["q"]).toBe("lab");
  expect(triedPath({ url: "/x", evil: "1" })).toBe("v1/explain?method=GET&url=%2Fx");
  expect(triedPath({ user: "ann", method: "GET" })).toBeNull();
});

test("a form changes its own part of the address", () => {
  const query = { q: "lab", site: "a.test", url: "/x", user: "ann" };
  expect(changed(SHOWN, query, { show: "open" })).toEqual({ url: "/x", user: "ann", show: "open" });
  expect(changed(TRIED, query, {})).toEqual({ q: "lab", site: "a.test" });
});

test("rows are found by who may, sites by any of their names", () => {
  expect(paths({})).toHaveLength(4);
  expect(paths({ q: "members of LAB" })).toEqual(["a.test /lab/*"]);
  expect(paths({ q: "10.0." })).toEqual(["*.b.test /office/*"]);
  expect(paths({ q: "jwt" })).toEqual(["a.test /lab/*"]);
  expect(paths({ site: "www" })).toEqual(["a.test /*", "a.test /lab/*"]);
  expect(paths({ q: "nothing like it" })).toEqual([]);
});

test("what is called exactly that is meant", () => {
  expect(paths({ q: "/*" })).toEqual(["a.test /*"]);
  expect(paths({ site: "*" })).toEqual(["* /* when method POST"]);
  expect(paths({ q: "/* when method POST" })).toEqual(["* /* when method POST"]);
});

test("rows are shown by whether everybody may", () => {
  expect(paths({ show: "open" })).toEqual(["a.test /*", "* /* when method POST"]);
  expect(paths({ show: "closed" })).toEqual(["a.test /lab/*", "*.b.test /office/*"]);
  expect(paths({ show: "sign-in" })).toEqual(["a.test /lab/*"]);
  expect(paths({ show: "open", q: "lab" })).toEqual([]);
});

test("a trial begins with a URL that the route answers", () => {
  const named = site(["a.test"], []);
  expect(urlOf(named, LAB)).toBe("http://a.test/lab/");
  expect(urlOf(site(["*.b.test"], [], { https_only: true }), OFFICE)).toBe(
    "https://www.b.test/office/",
  );
  expect(urlOf(site([], []), route("/u/{name}/b"))).toBe("/u/name/b");
  expect(urlOf(site([], []), route("/u/{rest*}"))).toBe("/u/rest");
  expect(urlOf(site([], []), route("*.php"))).toBe("/a.php");
  expect(urlOf(named, route("~ ^/x"))).toBeNull();
});
