// The filter of the history: its fields, and what is asked of the API for what stands in the address.
import { type Query, type QueryGiven, searchOf } from "../address";
import { type Field, chosen } from "../parts/filter";
import { clock, day } from "../text/format";

const PAGE_ROWS = 100;

/** What can be filtered by; the names are those of the API. */
export const FIELDS: Field[] = [
  { key: "q", label: "Search", placeholder: "any text of the request" },
  { key: "path", label: "Path", placeholder: "/cgi-bin/*" },
  { key: "status", label: "Status", placeholder: "404 or 5xx" },
  { key: "slower", label: "Slower than", placeholder: "100ms" },
  {
    key: "sort",
    label: "Order",
    choices: [
      ["", "newest first"],
      ["slowest", "slowest first"],
    ],
  },
  { key: "client", label: "Client", placeholder: "192.0.2.7", isMore: true },
  { key: "site", label: "Site", isMore: true },
  { key: "route", label: "Route", placeholder: "/cgi-bin/*", isMore: true },
  { key: "method", label: "Method", placeholder: "GET", isMore: true },
  { key: "handler", label: "Handler", placeholder: "cgi", isMore: true },
  {
    key: "fault",
    label: "Whose fault",
    isMore: true,
    choices: [
      ["", "anyone's or none"],
      ["client", "the client's"],
      ["server", "the server's"],
      ["script", "the program's"],
      ["upstream", "another server's"],
    ],
  },
  { key: "since", label: "Since", placeholder: "2026-11-22 14:00", isMore: true },
  { key: "until", label: "Until", placeholder: "2026-11-22 15:00", isMore: true },
];

/** The query of the API for the query of the address. */
export function historyPath(query: Query, before?: string): string {
  const asked: QueryGiven = { limit: PAGE_ROWS, ...chosen(FIELDS, query), before };
  for (const key of ["since", "until"]) {
    const given = query[key];
    if (given !== undefined) asked[key] = momentOf(given);
  }
  return `v1/history?${searchOf(asked)}`;
}

/** A moment as it is typed, or as Unix milliseconds; null when it is neither. */
export function momentOf(text: string): number | null {
  if (/^\d{11,}$/.test(text)) return Number(text);
  const ms = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(ms) ? null : ms;
}

/** A query as people type it: moments that stand as Unix milliseconds in words. */
export function typed(query: Query): Query {
  const shown = { ...query };
  for (const key of ["since", "until"]) {
    const ms = Number(shown[key]);
    if (/^\d{11,}$/.test(shown[key] ?? "")) shown[key] = `${day(ms)} ${clock(ms, ms)}`;
  }
  return shown;
}
