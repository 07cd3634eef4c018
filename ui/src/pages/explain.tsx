// What would the server do with this URL, and why? Asked without sending a request.
import type { JSX } from "preact";
import type { Explanation } from "../api/answers";
import { useAsk } from "../api/hooks";
import { link, searchOf } from "../address";
import { Facts } from "../parts/facts";
import type { Field } from "../parts/filter";
import { Filters } from "../parts/filters";
import { Page, Panel, Waiting } from "../parts/page";
import { Say } from "../parts/say";
import { go, place } from "../route";

const FIELDS: Field[] = [
  {
    key: "method",
    label: "Method",
    choices: ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"].map((one) => [one, one]),
  },
  { key: "url", label: "URL", placeholder: "http://example.org/cgi-bin/search?q=tea" },
  { key: "from", label: "From address", placeholder: "192.0.2.7" },
  { key: "user", label: "Signed in as", placeholder: "ann" },
];

/** The page. */
export function Explain(): JSX.Element {
  const { url, method = "GET", from, user } = place.value.query;
  const client = { ...(from ? { from } : {}), ...(user ? { user } : {}) };
  const asked = useAsk<Explanation>(
    url ? `v1/explain?${searchOf({ method, url, ...client })}` : null,
  );
  return (
    <Page
      title="Explain"
      lead="What the server would do with a URL, and by which lines of the config."
    >
      <Filters
        fields={FIELDS}
        query={{ method, ...(url ? { url } : {}), ...client }}
        apply="Explain"
        onApply={(next) => go(link("explain", next))}
      />
      {!url && <p class="empty">Give a URL, with its host as visitors write it.</p>}
      {url && <Waiting asked={asked} what="the explanation" />}
      {url && asked.value && <Explained of={asked.value} />}
    </Page>
  );
}

/** An explanation in words, and as facts. */
export function Explained(props: { of: Explanation }): JSX.Element {
  const { lines = [], ...facts } = props.of;
  return (
    <>
      {lines && lines.length > 0 && (
        <Panel title="In words">
          <pre class="told" tabIndex={0} aria-label="Explanation">
            <Say text={lines.join("\n")} lines />
          </pre>
        </Panel>
      )}
      <details class="panel">
        <summary>Every fact there is</summary>
        <Facts of={facts} />
      </details>
    </>
  );
}
