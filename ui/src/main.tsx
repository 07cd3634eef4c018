// Starts the pages: trades the token of the address, finds out who is here, and shows the page.
import { render } from "preact";
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { findSession, sentence, session } from "./api/client";
import { Frame } from "./frame";
import { listenToKeys } from "./keys";
import { Login, loginByAddress } from "./pages/login";
import { Notice } from "./parts/page";
import { Say } from "./parts/say";
import "./style/main.css";

function App(): JSX.Element {
  const said = useSignal<string | null>(null);
  const error = useSignal<string | null>(null);
  useEffect(() => {
    const begin = async (): Promise<void> => {
      try {
        said.value = await loginByAddress();
        await findSession();
        error.value = null;
      } catch (problem) {
        error.value = sentence(problem);
        setTimeout(() => void begin(), 3000);
      }
    };
    void begin();
  }, []);
  if (session.value === undefined) {
    return (
      <main class="login" id="main">
        <h1>hob</h1>
        {error.value === null ? (
          <p>Asking who you are …</p>
        ) : (
          <Notice level="bad">
            <Say text={error.value} />; trying again.
          </Notice>
        )}
      </main>
    );
  }
  return session.value === null ? <Login said={said.value} /> : <Frame />;
}

listenToKeys();
const root = document.getElementById("app")!;
root.textContent = "";
render(<App />, root);
