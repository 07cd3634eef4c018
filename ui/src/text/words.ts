// Sentences that more than one page says about a request.
import type { Request } from "../api/answers";

/** What a running request is doing, in words. */
export function stateWords(state: string | null | undefined): string {
  switch (state) {
    case "reading-body":
      return "reads its body";
    case "queued":
      return "waits for a worker";
    case "program":
      return "is with its program";
    case "sending":
      return "sends its answer";
    case "tunnel":
      return "is a tunnel";
    case "other":
    case "":
    case null:
    case undefined:
      return "is being answered";
    default:
      return state;
  }
}

/** How a finished request ended, in words. */
export function outcomeWords(outcome: string | null | undefined): string {
  switch (outcome) {
    case "complete":
      return "answered in full";
    case "client-left":
      return "the client left";
    case "timeout":
      return "the client was too slow";
    case "broken":
      return "the answer broke off";
    default:
      return outcome ?? "";
  }
}

/** The class of a status code, for its colour: `ok`, `moved`, `client`, `server` or `none`. */
export function statusClass(status: number | null | undefined): string {
  if (!status) return "none";
  if (status < 300) return "ok";
  if (status < 400) return "moved";
  return status < 500 ? "client" : "server";
}

/** Who asked: the name where it is known. */
export function who(request: Pick<Request, "client" | "client_name">): string {
  return request.client_name || request.client || "local socket";
}
