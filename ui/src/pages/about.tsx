// Which keys are there, and who am I here?
import type { JSX } from "preact";
import { act, session } from "../api/client";
import { useAsk, useDeed } from "../api/hooks";
import type { Overview } from "../api/answers";
import { link } from "../address";
import { KEYS, areKeysOn, switchKeys } from "../keys";
import { MENU } from "../menu";
import { Action } from "../parts/act";
import { Outcome, Page, Pairs, Panel } from "../parts/page";
import { Say } from "../parts/say";

/** The page. */
export function About(): JSX.Element {
  const asked = useAsk<Overview>("v1/overview");
  const deed = useDeed();
  return (
    <Page title="Help" lead="What each page answers, and the keys to it.">
      <Outcome deed={deed} />
      <div class="columns">
        <Panel title="Pages">
          <table class="plain">
            <tbody>
              {MENU.map((entry) => (
                <tr key={entry.page}>
                  <td class="number">
                    <kbd>g</kbd> <kbd>{entry.key}</kbd>
                  </td>
                  <th scope="row">
                    <a href={link(entry.page)}>{entry.name}</a>
                  </th>
                  <td>{entry.answers}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
        <Panel
          title="Keys"
          tools={
            <button type="button" aria-pressed={areKeysOn.value} onClick={switchKeys}>
              {areKeysOn.value ? "Keys are on" : "Keys are off"}
            </button>
          }
        >
          <table class="plain">
            <tbody>
              {KEYS.map(([key, what]) => (
                <tr key={key}>
                  <td>
                    <kbd>{key}</kbd>
                  </td>
                  <td>{what}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
        <Panel
          title="You"
          tools={
            <button
              type="button"
              onClick={() =>
                void deed.run(async () => {
                  await act("v1/logout");
                  session.value = null;
                  return "logged out";
                })
              }
            >
              Log out
            </button>
          }
        >
          <Pairs
            of={[
              ["user", <Say text={session.value?.user || "by token"} />],
              [
                "may",
                session.value?.role === "operate"
                  ? "look and change things"
                  : "look, not change things",
              ],
            ]}
          />
        </Panel>
        <Panel
          title="Server"
          tools={
            <>
              <Action
                label="Upgrade"
                confirm="The server goes over to the program as it now stands on disk. No connection breaks."
                isOff={deed.isRunning}
                onDo={() => void deed.run(() => act("v1/upgrade"))}
              />
              <Action
                label="Stop the server"
                isDangerous
                confirm="What is under way is finished, then the server ends. These pages end with it."
                isOff={deed.isRunning}
                onDo={() => void deed.run(() => act("v1/stop"))}
              />
            </>
          }
        >
          <Pairs
            of={[
              ["version", asked.value?.version ? <Say text={asked.value.version} /> : null],
              ["machine", asked.value?.hostname ? <Say text={asked.value.hostname} /> : null],
            ]}
          />
        </Panel>
      </div>
    </Page>
  );
}
