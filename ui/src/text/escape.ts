// Text from outside (paths, agents, what programs print) made safe to look at: characters that
// cannot be seen, move the cursor or turn the direction of writing are shown by name. It never
// makes markup; parts/say.tsx puts the pieces into text nodes.

/** A piece of a text: as it is, or a stand-in for a character that may not show itself. */
export interface Piece {
  text: string;
  isStandIn: boolean;
  /** What the character is, for who points at it. */
  title?: string;
}

/** Longest text that is shown whole, in characters; more is cut and said to be cut. */
export const TEXT_LENGTH_MAX = 20_000;

// What does not show itself: controls, direction marks, joiners and other zero-width characters,
// odd spaces, separators, the byte order mark, halves of pairs, tags and unassigned specials.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

const NAMES: Record<number, string> = {
  0x0: "null",
  0x7: "bell",
  0x8: "backspace",
  0x9: "tab",
  0xa: "line feed",
  0xd: "carriage return",
  0x1b: "escape",
  0x7f: "delete",
  0x9b: "control sequence introducer",
  0xa0: "no-break space",
  0xad: "soft hyphen",
  0x061c: "Arabic letter mark",
  0x200b: "zero-width space",
  0x200c: "zero-width non-joiner",
  0x200d: "zero-width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x2028: "line separator",
  0x2029: "paragraph separator",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
  0xfffd: "bytes that are no text",
};

/** Cuts a text into what shows itself and stand-ins for what does not. */
export function pieces(text: string, keep: "lines" | "nothing" = "nothing"): Piece[] {
  const shown = text.length > TEXT_LENGTH_MAX ? text.slice(0, TEXT_LENGTH_MAX) : text;
  const found: Piece[] = [];
  let from = 0;
  for (const match of shown.matchAll(UNSEEN)) {
    const character = match[0];
    if (keep === "lines" && (character === "\n" || character === "\t")) continue;
    if (match.index > from) found.push({ text: shown.slice(from, match.index), isStandIn: false });
    found.push(standIn(character.codePointAt(0) ?? 0));
    from = match.index + character.length;
  }
  if (from < shown.length) found.push({ text: shown.slice(from), isStandIn: false });
  if (shown.length < text.length) {
    const missing = text.length - shown.length;
    found.push({ text: `… ${missing} more characters`, isStandIn: true, title: "cut here" });
  }
  return found;
}

/** The same as one string, for titles, labels and files. */
export function visible(text: string): string {
  return pieces(text)
    .map((piece) => piece.text)
    .join("");
}

function standIn(code: number): Piece {
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const name = NAMES[code];
  return {
    text: symbol(code) ?? `⟨${number}⟩`,
    isStandIn: true,
    title: name ? `${name}, ${number}` : number,
  };
}

// ASCII's controls by their short names; fonts rarely have Unicode's pictures of them.
const SHORT = (
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI " +
  "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
).split(" ");

function symbol(code: number): string | null {
  if (code === 0xfffd) return "\ufffd";
  const short = code === 0x7f ? "DEL" : SHORT[code];
  return short === undefined ? null : `⟨${short}⟩`;
}
