// Addresses of pages: which one is shown, and with what. All of it stands after the `#`, so that
// every view can be linked to and the server needs one file only.

/** A page and what it is to show. */
export interface Place {
  /** The page: `history`. */
  page: string;
  /** What follows its name: an id, or nothing. */
  rest: string;
  query: Query;
}

/** Keys and values; empty values are left out. */
export type Query = Record<string, string>;

/** Reads the part of an address from `#` on. */
export function placeOf(hash: string): Place {
  const [path = "", search = ""] = split(hash.replace(/^#?\/?/, ""), "?");
  const [page = "", rest = ""] = split(path, "/");
  const query: Query = {};
  for (const [key, value] of new URLSearchParams(search)) if (value !== "") query[key] = value;
  return { page: page || "overview", rest: decoded(rest), query };
}

/** The address of a page. */
export function link(page: string, query: QueryGiven = {}, rest = ""): string {
  const search = searchOf(query);
  const path = rest === "" ? page : `${page}/${encodeURIComponent(rest)}`;
  return `#/${path}${search === "" ? "" : `?${search}`}`;
}

/** A query as it may be given: what is empty is left out. */
export type QueryGiven = Record<string, string | number | boolean | null | undefined>;

/** A query as text, without `?`; keys in the order given. */
export function searchOf(query: QueryGiven): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    search.append(key, value === true ? "1" : String(value));
  }
  return search.toString();
}

function split(text: string, at: string): [string, string] {
  const index = text.indexOf(at);
  return index < 0 ? [text, ""] : [text.slice(0, index), text.slice(index + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
