// What every page is framed with: its name, its state in words, panels, tiles and notices.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Say } from "./say";

/** A page: its name is the window's title and gets the focus when the page is gone to. */
export function Page(props: {
  title: string;
  lead?: ComponentChildren;
  tools?: ComponentChildren;
  children: ComponentChildren;
}): JSX.Element {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${props.title} · hob`;
  }, [props.title]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1 ref={head} tabIndex={-1} id="page-title">
            {props.title}
          </h1>
          {props.lead && <p class="lead">{props.lead}</p>}
        </div>
        {props.tools && <div class="tools">{props.tools}</div>}
      </header>
      {props.children}
    </>
  );
}

/** A part of a page with a head of its own. */
export function Panel(props: {
  title: ComponentChildren;
  tools?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}): JSX.Element {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <div class="panel-head">
        <h2>{props.title}</h2>
        {props.tools && <div class="tools">{props.tools}</div>}
      </div>
      {props.children}
    </section>
  );
}

/** One sentence that matters, coloured by how much. */
export function Notice(props: {
  level: "good" | "notice" | "warning" | "bad";
  children: ComponentChildren;
}): JSX.Element {
  const mark = { good: "✓", notice: "i", warning: "!", bad: "✕" }[props.level];
  return (
    <div class={`alert ${props.level}`} role={props.level === "bad" ? "alert" : "status"}>
      <span class="mark" aria-hidden="true">
        {mark}
      </span>
      <div>{props.children}</div>
    </div>
  );
}

/** What was asked for is still to come, or did not come. */
export function Waiting(props: {
  asked: { value: unknown; error: string | null };
  what: string;
}): JSX.Element | null {
  if (props.asked.error !== null) {
    return (
      <Notice level="bad">
        Cannot show {props.what}: <Say text={props.asked.error} />.
      </Notice>
    );
  }
  if (props.asked.value === null) return <p class="empty">Asking for {props.what} …</p>;
  return null;
}

/** What came of an action. */
export function Outcome(props: {
  deed: { said: string | null; error: string | null };
}): JSX.Element {
  return (
    <div class="outcome" aria-live="polite">
      {props.deed.error !== null && (
        <Notice level="bad">
          <Say text={props.deed.error} lines />
        </Notice>
      )}
      {props.deed.said !== null && (
        <Notice level="good">
          <pre class="said">
            <Say text={props.deed.said} lines />
          </pre>
        </Notice>
      )}
    </div>
  );
}

/** Pairs of names and values. */
export function Pairs(props: { of: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="pairs">
      {props.of
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
