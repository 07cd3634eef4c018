// One request's whole life: the waterfall, the verdict, and every field there is.
import type { ComponentChildren, JSX } from "preact";
import { useAsk } from "../api/hooks";
import type { Request } from "../api/answers";
import { link } from "../address";
import { Waterfall } from "../chart/waterfall";
import { Notice, Page, Pairs, Panel, Waiting } from "../parts/page";
import { Status, remark } from "../parts/request";
import { Code, Say } from "../parts/say";
import { bytes, clockMs, count, day, micros } from "../text/format";
import { outcomeWords, statusClass, who } from "../text/words";

/** The page of one request. */
export function OneRequest(props: { id: string }): JSX.Element {
  const asked = useAsk<Request>(`v1/history/${encodeURIComponent(props.id)}`);
  const of = asked.value;
  return (
    <Page
      title="One request"
      lead={
        <>
          <a href={link("history")}>History</a> · <Code text={props.id} />
        </>
      }
    >
      <Waiting asked={asked} what="this request" />
      {of && <Life of={of} />}
    </Page>
  );
}

function Life(props: { of: Request }): JSX.Element {
  const { of } = props;
  const said = remark(of);
  const level = of.verdict ? "warning" : statusClass(of.status) === "server" ? "bad" : "notice";
  return (
    <>
      <p class="request-line">
        <Status of={of.status} />{" "}
        <span class="method">
          <Say text={of.method} />
        </span>{" "}
        <Code text={of.target} />
      </p>
      {said !== "" && (
        <Notice level={level}>
          <Say text={said} />
          {of.detail && of.detail !== said && (
            <pre>
              <Say text={of.detail} lines />
            </pre>
          )}
        </Notice>
      )}
      <Panel title={`${micros(of.total_us)} in all`} tools={<Same of={of} />}>
        <Waterfall request={of} />
      </Panel>
      <div class="columns">
        <Panel title="Asked">
          <Asked of={of} />
        </Panel>
        <Panel title="Answered">
          <Answered of={of} />
        </Panel>
        <Panel title="Times">
          <Times of={of} />
        </Panel>
        <Panel title="Line">
          <Line of={of} />
        </Panel>
      </div>
    </>
  );
}

function Same(props: { of: Request }): JSX.Element {
  const { of } = props;
  return (
    <>
      {of.client && <a href={link("history", { client: of.client })}>same client</a>}
      {of.route && (
        <a href={link("history", { site: of.site, route: of.route, sort: "slowest" })}>
          slowest of this route
        </a>
      )}
      <a href={link("watch", { path: pathOf(of.target ?? "") })}>watch this path</a>
      <a href={link("explain", { method: of.method, url: urlOf(of) })}>explain</a>
    </>
  );
}

function Asked(props: { of: Request }): JSX.Element {
  const { of } = props;
  return (
    <Pairs
      of={[
        ["when", `${day(of.started_unix_ms)} ${clockMs(of.started_unix_ms, of.started_unix_ms)}`],
        ["client", said(who(of))],
        ["address", of.client_name ? said(`${of.client} port ${of.client_port ?? "–"}`) : null],
        ["user", said(of.user)],
        ["host", said(of.host)],
        ["target", said(of.target)],
        ["protocol", said([of.protocol, of.tls_version].filter(Boolean).join(" over "))],
        ["came from", said(of.referer)],
        ["agent", said(of.user_agent)],
        ["received", bytes(of.bytes_in)],
        ["trace", said(of.trace_id)],
      ]}
    />
  );
}

function Answered(props: { of: Request }): JSX.Element {
  const { of } = props;
  return (
    <Pairs
      of={[
        ["status", <Status of={of.status} />],
        ["ended", outcomeWords(of.outcome)],
        ["fault", of.fault && of.fault !== "none" ? said(`the ${of.fault}'s`) : null],
        ["reason", said(of.reason)],
        ["detail", said(of.detail)],
        ["strange", said(of.note)],
        ["site", said(of.site)],
        ["route", said(of.route)],
        ["handler", said(of.handler)],
        ["worker", of.worker_pid ? `process ${of.worker_pid}` : null],
        ["cache", of.cache && of.cache !== "none" ? said(of.cache) : null],
        ["head", bytes(of.head_bytes_out)],
        ["body", bytes(of.body_bytes_out)],
      ]}
    />
  );
}

function Times(props: { of: Request }): JSX.Element {
  const { of } = props;
  const time = (value: number | null | undefined): string | null => (value ? micros(value) : null);
  return (
    <Pairs
      of={[
        ["total", micros(of.total_us)],
        ["first byte", time(of.first_byte_us)],
        ["server", time(of.server_us)],
        ["queue", time(of.queue_us)],
        ["start", time(of.start_us)],
        ["program", time(of.program_us)],
        ["processor", time(of.cpu_us)],
        ["disk", time(of.disk_wait_us)],
        ["client's body", time(of.client_body_us)],
        ["client taking", time(of.client_take_us)],
        ["TLS handshake", time(of.handshake_us)],
      ]}
    />
  );
}

function Line(props: { of: Request }): JSX.Element {
  const { of } = props;
  if (!of.rtt_us && !of.tls_handshake) {
    return <p class="empty">The line is measured at the end of slow requests only.</p>;
  }
  return (
    <Pairs
      of={[
        ["round trip", of.rtt_us ? micros(of.rtt_us) : null],
        ["sent again", of.rtt_us ? `${count(of.retransmits)} packets` : null],
        ["window", of.window_bytes ? bytes(of.window_bytes) : null],
        ["TLS began", said(of.tls_handshake)],
      ]}
    />
  );
}

function said(text: string | null | undefined): ComponentChildren {
  return text ? <Say text={text} /> : null;
}

/** A target without its query. */
export function pathOf(target: string): string {
  return target.split("?")[0] ?? target;
}

/** The address that was asked for, as well as it is known. */
export function urlOf(of: Request): string {
  const target = of.target ?? "";
  if (/^[a-z]+:\/\//i.test(target)) return target;
  return `${of.tls_version ? "https" : "http"}://${of.host || "localhost"}${target}`;
}
