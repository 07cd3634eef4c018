// Where this browser is, and going elsewhere.
import { signal } from "@preact/signals";
import { type Place, placeOf } from "./address";

/** Where we are. */
export const place = signal<Place>(placeOf(location.hash));

/** Goes to an address made by `link`; `replace` leaves no step back. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  place.value = placeOf(to);
}

addEventListener("hashchange", () => (place.value = placeOf(location.hash)));
addEventListener("popstate", () => (place.value = placeOf(location.hash)));
