// Light or dark: as the system says, unless chosen here.
import { effect, signal } from "@preact/signals";
import { kept, keep } from "./settings";

/** What was chosen. */
export type Choice = "system" | "light" | "dark";

/** The choice, remembered in this browser. */
export const choice = signal<Choice>(readChoice());

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const system = signal(systemIsDark.matches);
systemIsDark.addEventListener("change", (event) => (system.value = event.matches));

/** What is shown. */
export const theme = signal<"light" | "dark">("light");

effect(() => {
  const isDark = choice.value === "dark" || (choice.value === "system" && system.value);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
  theme.value = isDark ? "dark" : "light";
});

/** Goes on to the next choice: system, light, dark. */
export function switchTheme(): void {
  const next = { system: "light", light: "dark", dark: "system" } as const;
  choice.value = next[choice.value];
  keep("theme", choice.value);
}

function readChoice(): Choice {
  const was = kept("theme");
  return was === "light" || was === "dark" ? was : "system";
}
