// Every page, once: its address, name, key and group. The menu, the keys and the help follow it.
import type { ComponentType } from "preact";
import { About } from "./pages/about";
import { Access } from "./pages/access";
import { Activity } from "./pages/activity";
import { Audit } from "./pages/audit";
import { Bans } from "./pages/bans";
import { Cache } from "./pages/cache";
import { Certificates } from "./pages/certificates";
import { ConfigPage } from "./pages/config";
import { Connections } from "./pages/connections";
import { Environment } from "./pages/environment";
import { Explain } from "./pages/explain";
import { HistoryPage } from "./pages/history";
import { Logs } from "./pages/logs";
import { OverviewPage } from "./pages/overview";
import { Programs } from "./pages/programs";
import { Routes } from "./pages/routes";
import { Running } from "./pages/running";
import { Statistics } from "./pages/statistics";
import { Watch } from "./pages/watch";

/** One page of the menu. */
export interface Entry {
  page: string;
  name: string;
  /** After `g`. */
  key: string;
  group: "Now" | "Requests" | "Parts" | "Server";
  /** The question it answers. */
  answers: string;
  view: ComponentType;
}

/** All pages in the order of the menu. */
export const MENU: Entry[] = [
  {
    page: "overview",
    name: "Overview",
    key: "o",
    group: "Now",
    answers: "Is everything well, and where should I look?",
    view: OverviewPage,
  },
  {
    page: "activity",
    name: "Activity",
    key: "a",
    group: "Now",
    answers: "What was it like over the last minutes, days, weeks?",
    view: Activity,
  },
  {
    page: "running",
    name: "Running",
    key: "r",
    group: "Now",
    answers: "What is being done now, for whom, for how long?",
    view: Running,
  },
  {
    page: "watch",
    name: "Watch",
    key: "w",
    group: "Now",
    answers: "What happens to these requests, step by step?",
    view: Watch,
  },
  {
    page: "history",
    name: "History",
    key: "h",
    group: "Requests",
    answers: "What became of a request, and what took it so long?",
    view: HistoryPage,
  },
  {
    page: "routes",
    name: "Routes",
    key: "s",
    group: "Requests",
    answers: "Which routes are slow, busy or failing?",
    view: Routes,
  },
  {
    page: "explain",
    name: "Explain",
    key: "x",
    group: "Requests",
    answers: "What would the server do with this URL, and why?",
    view: Explain,
  },
  {
    page: "access",
    name: "Access",
    key: "m",
    group: "Requests",
    answers: "Who may what, and would this request be let in?",
    view: Access,
  },
  {
    page: "programs",
    name: "Programs",
    key: "p",
    group: "Parts",
    answers: "How are programs and their workers doing?",
    view: Programs,
  },
  {
    page: "cache",
    name: "Cache",
    key: "c",
    group: "Parts",
    answers: "What is in memory, and does it help?",
    view: Cache,
  },
  {
    page: "connections",
    name: "Connections",
    key: "n",
    group: "Parts",
    answers: "Who is connected, and how good is the line?",
    view: Connections,
  },
  {
    page: "bans",
    name: "Bans",
    key: "b",
    group: "Parts",
    answers: "Who is banned, why, and until when?",
    view: Bans,
  },
  {
    page: "certificates",
    name: "Certificates",
    key: "t",
    group: "Parts",
    answers: "Which certificates are in use, and until when?",
    view: Certificates,
  },
  {
    page: "logs",
    name: "Logs",
    key: "l",
    group: "Server",
    answers: "What is being logged?",
    view: Logs,
  },
  {
    page: "config",
    name: "Config",
    key: "f",
    group: "Server",
    answers: "What does the config say, and what would a change do?",
    view: ConfigPage,
  },
  {
    page: "environment",
    name: "Environment",
    key: "e",
    group: "Server",
    answers: "What machine, build, limits and sandbox is this?",
    view: Environment,
  },
  {
    page: "statistics",
    name: "Statistics",
    key: "i",
    group: "Server",
    answers: "How much of what since start, today and last zeroing?",
    view: Statistics,
  },
  {
    page: "audit",
    name: "Audit",
    key: "u",
    group: "Server",
    answers: "Who did what here?",
    view: Audit,
  },
  {
    page: "about",
    name: "Help",
    key: "?",
    group: "Server",
    answers: "Which keys are there, and who am I here?",
    view: About,
  },
];
