// What this browser remembers: nothing but how the pages look and whether keys work.

/** Settings by name. */
export type Setting = "theme" | "keys";

/** What was remembered; null when nothing was, or the browser remembers nothing. */
export function kept(setting: Setting): string | null {
  try {
    return localStorage.getItem(`hob-${setting}`);
  } catch {
    return null;
  }
}

/** Remembers a setting, where the browser lets us. */
export function keep(setting: Setting, value: string): void {
  try {
    localStorage.setItem(`hob-${setting}`, value);
  } catch {
    // Private windows may refuse: the setting then lasts as long as the page.
  }
}
