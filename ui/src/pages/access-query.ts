// The page of access between its address, its two forms and the API: which rows are shown, and what
// request is tried.
import { type Query, searchOf } from "../address";
import type { RouteAccess, SiteAccess } from "../api/answers";
import { type Field, chosen } from "../parts/filter";

/** A request that is tried; the names are those of the API. */
export const TRIED: Field[] = [
  {
    key: "method",
    label: "Method",
    choices: ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"].map((one) => [one, one]),
  },
  { key: "url", label: "URL", placeholder: "https://example.org/office/plan.html" },
  { key: "user", label: "User", placeholder: "nobody" },
  {
    key: "groups",
    label: "In groups",
    placeholder: "as the files say",
    title: "With commas between them; in the place of those that a file of groups says.",
  },
  { key: "from", label: "From address", placeholder: "192.0.2.7" },
];

/** Which rows are shown. */
export const SHOWN: Field[] = [
  { key: "q", label: "Find", placeholder: "route, user, group, network" },
  { key: "site", label: "Site", placeholder: "example.org" },
  {
    key: "show",
    label: "Show",
    choices: [
      ["", "every route"],
      ["open", "open to everybody"],
      ["closed", "not open to everybody"],
      ["sign-in", "where one signs in"],
    ],
  },
];

/** What is asked for what stands in the address; null where nothing is tried. */
export function triedPath(query: Query): string | null {
  const { method = "GET", ...rest } = chosen(TRIED, query);
  return rest["url"] ? `v1/explain?${searchOf({ method, ...rest })}` : null;
}

/** The query of one form changed, and of the other as it was. */
export function changed(fields: Field[], query: Query, next: Query): Query {
  const own = new Set(fields.map((field) => field.key));
  const others = Object.entries(query).filter(([key]) => !own.has(key));
  return { ...Object.fromEntries(others), ...next };
}

/**
 * Sites and their routes that a query shows; a site of which no route is shown is left out. Where
 * something is called exactly what is looked for, that is meant.
 */
export function shownSites(sites: SiteAccess[], query: Query): SiteAccess[] {
  const wanted = (query["site"] ?? "").trim().toLowerCase();
  const find = (query["q"] ?? "").trim();
  const has = (site: SiteAccess): boolean =>
    [site.site, ...site.names].some((name) => name.toLowerCase().includes(wanted));
  const ofSite = meant(sites, (site) => site.site === wanted, has);
  const isCalled = (route: RouteAccess): boolean => labelOf(route) === find;
  const called = ofSite.some((site) => site.routes.some(isCalled));
  const isMeant = (route: RouteAccess): boolean => (called ? isCalled(route) : true);
  return ofSite
    .map((site) => ({
      ...site,
      routes: site.routes.filter((route) => isMeant(route) && isShown(route, query)),
    }))
    .filter((site) => site.routes.length > 0);
}

function meant<T>(all: T[], isExact: (one: T) => boolean, fits: (one: T) => boolean): T[] {
  const exact = all.filter(isExact);
  return exact.length > 0 ? exact : all.filter(fits);
}

function isShown(route: RouteAccess, query: Query): boolean {
  const is: Record<string, boolean> = {
    open: route.open,
    closed: !route.open,
    "sign-in": (route.sign_in ?? null) !== null,
  };
  const find = (query["q"] ?? "").trim().toLowerCase();
  return (is[query["show"] ?? ""] ?? true) && textOf(route).toLowerCase().includes(find);
}

/** All that can be found in a row. */
function textOf(route: RouteAccess): string {
  const { access, sign_in } = route;
  return [
    labelOf(route),
    route.who,
    route.handler,
    route.place,
    sign_in?.kind,
    ...(access?.methods ?? []),
    ...route.limits.map((limit) => `${limit.limit} ${limit.text}`),
  ].join("\n");
}

/** A route as it is called among its site's. */
export function labelOf(route: RouteAccess): string {
  return route.when ? `${route.path} when ${route.when}` : route.path;
}

/** A URL that a route answers, to begin a trial with; null where its path does not tell one. */
export function urlOf(site: SiteAccess, route: RouteAccess): string | null {
  const { path } = route;
  const asPath = path.startsWith("*") ? `/a${path.slice(1)}` : path;
  if (!asPath.startsWith("/")) return null;
  const filled = asPath.replace(/\{([^}*]*)\*?\}/g, "$1").replace(/\*$/, "");
  const name = site.names[0];
  if (name === undefined) return filled;
  return `${site.https_only ? "https" : "http"}://${name.replace(/^\*\./, "www.")}${filled}`;
}
