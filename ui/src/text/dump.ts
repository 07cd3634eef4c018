// Bytes of heads and bodies as a table of hex and text, sixteen to a line.

/** One line of a dump. */
export interface DumpLine {
  offset: string;
  hex: string;
  text: string;
}

/** Most bytes that are laid out; a watcher gets no more of one event. */
export const DUMP_BYTES_MAX = 16 * 1024;

const WIDTH = 16;

/** Lays bytes out. Bytes that are not printable ASCII show as a dot. */
export function dump(bytes: Uint8Array): DumpLine[] {
  const lines: DumpLine[] = [];
  const end = Math.min(bytes.length, DUMP_BYTES_MAX);
  for (let at = 0; at < end; at += WIDTH) {
    const part = Array.from(bytes.subarray(at, Math.min(at + WIDTH, end)));
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0"));
    lines.push({
      offset: at.toString(16).padStart(6, "0"),
      hex: `${hex.slice(0, 8).join(" ").padEnd(23)}  ${hex.slice(8).join(" ").padEnd(23)}`,
      text: part
        .map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·"))
        .join(""),
    });
  }
  return lines;
}

/** Bytes written as pairs of hex digits, with or without spaces; null when it is something else. */
export function fromHex(text: string): Uint8Array | null {
  const bare = text.replace(/\s+/g, "");
  if (bare.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(bare)) return null;
  const bytes = new Uint8Array(bare.length / 2);
  for (let at = 0; at < bytes.length; at += 1) {
    bytes[at] = Number.parseInt(bare.slice(at * 2, at * 2 + 2), 16);
  }
  return bytes;
}
