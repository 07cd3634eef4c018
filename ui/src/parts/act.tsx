// Buttons that change something: off, with the reason, for who may only look; and asking first.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { whyNot } from "../api/client";

/** A button that does something to the server. */
export function Action(props: {
  label: string;
  /** What it works on, for who hears the button rather than sees its row. */
  on?: string;
  /** Asked before it is done; done at once without. */
  confirm?: ComponentChildren;
  isDangerous?: boolean;
  isOff?: boolean;
  /** It changes nothing: also for who may only look. */
  isForAll?: boolean;
  /** Why it is off, when it is not for the role. */
  offReason?: string;
  onDo(): void;
}): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const id = useId();
  const reason =
    (props.isForAll ? null : whyNot()) ?? (props.isOff ? (props.offReason ?? null) : null);
  const isOff = reason !== null || props.isOff === true;
  const label = props.on ? `${props.label} ${props.on}` : undefined;
  const press = (): void => {
    if (isOff) return;
    if (props.confirm === undefined) props.onDo();
    else setAsking(true);
  };
  return (
    <>
      <button
        type="button"
        class={props.isDangerous ? "danger" : ""}
        aria-label={label}
        aria-disabled={isOff}
        aria-describedby={reason === null ? undefined : id}
        title={reason ?? undefined}
        onClick={press}
      >
        {props.label}
      </button>
      {reason !== null && (
        <span id={id} class="unseen">
          {reason}
        </span>
      )}
      {isAsking && (
        <Ask
          title={`${props.label}${props.on ? ` ${props.on}` : ""}?`}
          yes={props.label}
          isDangerous={props.isDangerous === true}
          onEnd={(isYes) => {
            setAsking(false);
            if (isYes) props.onDo();
          }}
        >
          {props.confirm}
        </Ask>
      )}
    </>
  );
}

/** A question over the page; Escape is no. */
function Ask(props: {
  title: string;
  yes: string;
  isDangerous: boolean;
  children: ComponentChildren;
  onEnd(isYes: boolean): void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  const end = (isYes: boolean): void => {
    // Closing gives the focus back to the button that asked.
    dialog.current?.close();
    props.onEnd(isYes);
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        end(false);
      }}
    >
      <h2 id={id}>{props.title}</h2>
      <div>{props.children}</div>
      <div class="buttons">
        <button type="button" onClick={() => end(false)}>
          Cancel
        </button>
        <button
          type="button"
          class={props.isDangerous ? "danger solid" : "solid"}
          onClick={() => end(true)}
        >
          {props.yes}
        </button>
      </div>
    </dialog>
  );
}
