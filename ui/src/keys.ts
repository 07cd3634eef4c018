// Keys: `g` and a letter goes to a page, `/` to the search, `j` and `k` along rows. They can be
// switched off, and never work while something is being typed.
import { signal } from "@preact/signals";
import { link } from "./address";
import { MENU } from "./menu";
import { go } from "./route";
import { kept, keep } from "./settings";
import { switchTheme } from "./theme";

/** Whether keys do anything. */
export const areKeysOn = signal(kept("keys") !== "off");

/** Switches keys on or off, and remembers it. */
export function switchKeys(): void {
  areKeysOn.value = !areKeysOn.value;
  keep("keys", areKeysOn.value ? "on" : "off");
}

/** Keys that work on every page, for the help. */
export const KEYS: [string, string][] = [
  ["?", "this help"],
  ["/", "to the first field of the search"],
  ["j, k", "to the next row's link, to the one before"],
  ["t", "light, dark, or as the system has it"],
  ["Escape", "closes a question, leaves a field"],
];

/** How long `g` waits for its letter, in milliseconds. */
const LETTER_MS_MAX = 1500;

let goneAt = 0;

/** Listens to keys for as long as the page lives. */
export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    const isTyping = target.matches("input, textarea, select, [contenteditable]");
    if (isTyping && event.key === "Escape") target.blur();
    const isOurs = !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping;
    if (!isOurs || !areKeysOn.value || document.querySelector("dialog[open]")) return;
    if (pressed(event.key)) event.preventDefault();
  });
}

function pressed(key: string): boolean {
  const isSecond = Date.now() - goneAt < LETTER_MS_MAX;
  goneAt = 0;
  if (isSecond) {
    const entry = MENU.find((one) => one.key === key);
    if (entry) go(link(entry.page));
    return entry !== undefined;
  }
  switch (key) {
    case "g":
      goneAt = Date.now();
      return true;
    case "?":
      go(link("about"));
      return true;
    case "/":
      return focus(document.querySelector("main form input[type=text], main form textarea"));
    case "t":
      switchTheme();
      return true;
    case "j":
      return step(1);
    case "k":
      return step(-1);
    default:
      return false;
  }
}

function step(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("main tbody tr")]
    .map((row) => row.querySelector<HTMLElement>("a, button"))
    .filter((one) => one !== null);
  const at = rows.indexOf(document.activeElement as HTMLElement);
  return focus(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by] ?? null);
}

function focus(element: Element | null): boolean {
  if (!(element instanceof HTMLElement)) return false;
  element.focus();
  return true;
}
