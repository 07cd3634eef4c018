// Asks the server. Every failure ends as one sentence (Refusal), so that pages show words and never
// a code alone. It also knows whether the server answers at all, since when not, and who is here.
import { signal } from "@preact/signals";
import type { Remark, Session } from "./answers";

/** What the server, or the way to it, said no with. */
export class Refusal extends Error {
  constructor(
    message: string,
    /** The status code; 0 when there was no answer. */
    readonly status: number,
  ) {
    super(message);
  }
}

/** Who is here; null before login, undefined before that is known. */
export const session = signal<Session | null | undefined>(undefined);

/** Since when the server does not answer, Unix milliseconds; null when it does. */
export const lostSince = signal<number | null>(null);

/** Longest wait for an answer. A stack dump or a reload may take some seconds. */
const ANSWER_MS_MAX = 30_000;

/** Where the API is: beside the pages, wherever they are mounted. */
const ROOT = new URL(".", location.href).href;

/** Asks for something; `signal` gives it up. */
export async function ask<T>(path: string, given?: AbortSignal): Promise<T> {
  return answered<T>(path, { method: "GET" }, given);
}

/** Has something done. */
export async function act<T = Remark>(path: string, body: unknown = {}): Promise<T> {
  const header = session.value?.csrf_header ?? "X-Hob-Admin";
  return answered<T>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", [header]: "1" },
    body: JSON.stringify(body),
  });
}

/** Opens an answer that never ends. */
export async function open(path: string, given: AbortSignal): Promise<Response> {
  const response = await reached(path, { headers: { Accept: "text/event-stream" } }, given);
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Finds out who is here. */
export async function findSession(): Promise<void> {
  try {
    session.value = await ask<Session>("v1/session");
  } catch (error) {
    if (error instanceof Refusal && error.status !== 0) session.value = null;
    else throw error;
  }
}

/** May this visitor change things? If not, why not, in words. */
export function whyNot(): string | null {
  return session.value?.role === "look"
    ? "Your role may look and not change things; it takes the role operate."
    : null;
}

/** An error as a sentence. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function answered<T>(path: string, how: RequestInit, given?: AbortSignal): Promise<T> {
  const limit = AbortSignal.timeout(ANSWER_MS_MAX);
  const response = await reached(path, how, given ? AbortSignal.any([given, limit]) : limit);
  if (!response.ok) throw await refusal(response);
  try {
    return (await response.json()) as T;
  } catch {
    throw new Refusal(`the answer to ${path} is not JSON`, response.status);
  }
}

async function reached(path: string, how: RequestInit, given: AbortSignal): Promise<Response> {
  try {
    const response = await fetch(new URL(path, ROOT), {
      ...how,
      signal: given,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
    });
    lostSince.value = null;
    return response;
  } catch (error) {
    if (given.aborted && (given.reason as { name?: string } | undefined)?.name !== "TimeoutError") {
      throw error;
    }
    lostSince.value ??= Date.now();
    throw new Refusal("the server does not answer", 0);
  }
}

async function refusal(response: Response): Promise<Refusal> {
  if (response.status === 401) session.value = null;
  let text = "";
  try {
    const body = (await response.json()) as { text?: unknown };
    if (typeof body.text === "string") text = body.text;
  } catch {
    // An answer without words; the code has to do.
  }
  return new Refusal(text || plain(response.status), response.status);
}

function plain(status: number): string {
  switch (status) {
    case 401:
      return "you are not logged in, or the login has expired";
    case 403:
      return "this is not allowed to you";
    case 404:
      return "this server does not have that";
    case 429:
      return "too many tries: wait a minute";
    default:
      return `the server answered with status ${status}`;
  }
}
