// Shows text from outside. The only way such text gets onto a page: as text nodes, with what cannot
// be seen shown by name.
import { Fragment } from "preact";
import type { JSX } from "preact";
import { pieces } from "../text/escape";

/** A text from a visitor, a script, a file or the server. */
export function Say(props: { text: string | null | undefined; lines?: boolean }): JSX.Element {
  const found = pieces(props.text ?? "", props.lines ? "lines" : "nothing");
  return (
    <bdi>
      {found.map((piece, index) =>
        piece.isStandIn ? (
          <span key={index} class="stand-in" title={piece.title}>
            {piece.text}
          </span>
        ) : (
          <Fragment key={index}>{piece.text}</Fragment>
        ),
      )}
    </bdi>
  );
}

/** The same in the letters of code, as paths and agents are. */
export function Code(props: { text: string | null | undefined }): JSX.Element {
  return (
    <code>
      <Say text={props.text} />
    </code>
  );
}
