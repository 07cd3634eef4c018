// Who are you? By the one-time token of the printed address, or by name and password.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { act, findSession, sentence } from "../api/client";
import { link } from "../address";
import { Notice } from "../parts/page";
import { Say } from "../parts/say";
import { go } from "../route";

/** The token that the address carries, if it does: `#token=…`. */
export function tokenOf(hash: string): string | null {
  const token = new URLSearchParams(hash.replace(/^#\/?\??/, "")).get("token");
  return token === "" ? null : token;
}

/** Trades the token of the address for a cookie. What went wrong, in words; null when it went well. */
export async function loginByAddress(): Promise<string | null> {
  const token = tokenOf(location.hash);
  if (token === null) return null;
  // First of all, so that it stands in no history, bookmark or screenshot.
  go(link("overview"), "replace");
  try {
    await act("v1/login", { token });
    return null;
  } catch (error) {
    return sentence(error);
  }
}

/** Asks for name and password. */
export function Login(props: { said: string | null }): JSX.Element {
  // What the address came to stands until something else was tried: it may be told late.
  const error = useSignal<string | null | undefined>(undefined);
  const told = error.value === undefined ? props.said : error.value;
  const isAsking = useSignal(false);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const given = new FormData(form);
    const token = String(given.get("token") ?? "").trim();
    isAsking.value = true;
    error.value = null;
    try {
      const body = { user: String(given.get("user")), password: String(given.get("password")) };
      await act("v1/login", token === "" ? body : { token });
      await findSession();
    } catch (problem) {
      error.value = sentence(problem);
    }
    isAsking.value = false;
  };
  return (
    <main class="login" id="main">
      <h1>
        <img src="./icon.svg" alt="" width="28" height="28" /> hob
      </h1>
      <p>
        The server printed an address with a one-time token when it started: open that, or paste the
        token. Where users are set up, log in by name and password.
      </p>
      {told !== null && (
        <Notice level="bad">
          <Say text={told} />
        </Notice>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <label class="field">
          <span>User</span>
          <input name="user" autocomplete="username" autocapitalize="off" spellcheck={false} />
        </label>
        <label class="field">
          <span>Password</span>
          <input name="password" type="password" autocomplete="current-password" />
        </label>
        <p class="or">or</p>
        <label class="field">
          <span>Token</span>
          <input name="token" autocomplete="off" autocapitalize="off" spellcheck={false} />
        </label>
        <button type="submit" class="solid" disabled={isAsking.value}>
          {isAsking.value ? "Logging in …" : "Log in"}
        </button>
      </form>
    </main>
  );
}
