// What stands around every page: the menu, who is here, and whether the server answers.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { findSession, lostSince, session } from "./api/client";
import { backoffMs } from "./api/events";
import { link } from "./address";
import { MENU } from "./menu";
import { Notice, Page } from "./parts/page";
import { Code, Say } from "./parts/say";
import { place } from "./route";
import { clock } from "./text/format";
import { choice, switchTheme } from "./theme";

const GROUPS = ["Now", "Requests", "Parts", "Server"] as const;

/** The menu and the page that the address names. */
export function Frame(): JSX.Element {
  const { page, rest } = place.value;
  const isOpen = useSignal(false);
  const entry = MENU.find((one) => one.page === page);
  const View = entry?.view;
  useEffect(() => {
    isOpen.value = false;
  }, [page, rest]);
  useArrival(`${page}/${rest}`);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <Top isOpen={isOpen.value} onMenu={() => (isOpen.value = !isOpen.value)} />
      <nav aria-label="Pages" id="menu" class={isOpen.value ? "open" : ""}>
        {GROUPS.map((group) => (
          <div key={group}>
            <h2>{group}</h2>
            <ul>
              {MENU.filter((one) => one.group === group).map((one) => (
                <li key={one.page}>
                  <a
                    href={link(one.page)}
                    aria-current={one.page === page ? "page" : undefined}
                    title={one.answers}
                  >
                    {one.name}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <Lost />
        {View ? <View /> : <NoPage page={page} />}
      </main>
    </div>
  );
}

function Top(props: { isOpen: boolean; onMenu(): void }): JSX.Element {
  const who = session.value;
  const name = { system: "as the system", light: "light", dark: "dark" }[choice.value];
  return (
    <header class="top">
      <button
        type="button"
        class="menu-button"
        aria-expanded={props.isOpen}
        aria-controls="menu"
        onClick={props.onMenu}
      >
        Menu
      </button>
      <a class="brand" href={link("overview")}>
        <img src="./icon.svg" alt="" width="20" height="20" /> hob
      </a>
      <span class="grow" />
      <a class="who" href={link("about")}>
        <Say text={who?.user || "token"} /> · {who?.role}
      </a>
      <button type="button" onClick={switchTheme} aria-label={`Colours: ${name}. Change.`}>
        {{ system: "◐", light: "☀", dark: "☾" }[choice.value]}
      </button>
    </header>
  );
}

/** Says that the server does not answer, and asks until it does. */
function Lost(): JSX.Element | null {
  const since = lostSince.value;
  const tries = useRef(0);
  useEffect(() => {
    if (since === null) {
      tries.current = 0;
      return;
    }
    let timer = 0;
    const again = (): void => {
      timer = window.setTimeout(() => {
        tries.current += 1;
        findSession().catch(again);
      }, backoffMs(tries.current));
    };
    again();
    return () => clearTimeout(timer);
  }, [since]);
  if (since === null) return null;
  return (
    <Notice level="bad">
      The server does not answer since {clock(since)}. What you see is from before; trying again by
      itself.
    </Notice>
  );
}

function NoPage(props: { page: string }): JSX.Element {
  return (
    <Page title="No such page">
      <p class="empty">
        There is no page <Code text={props.page} />. <a href={link("overview")}>Overview</a>
      </p>
    </Page>
  );
}

/** Gives the focus to a page that was gone to, so that it is read out and keys work on it. */
function useArrival(where: string): void {
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    scrollTo(0, 0);
    document.getElementById("page-title")?.focus({ preventScroll: true });
  }, [where]);
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
