// Text from outside shows what it is made of, and is never shortened in silence.
import { expect, test } from "vitest";
import { TEXT_LENGTH_MAX, pieces, visible } from "../../src/text/escape";

test("plain text stays one piece, markup included", () => {
  const text = `<img src=x onerror="go()">'&amp; grüße 日本 👍`;
  expect(pieces(text)).toEqual([{ text, isStandIn: false }]);
});

test("nothing gives no piece", () => {
  expect(pieces("")).toEqual([]);
});

test("controls show their names", () => {
  expect(visible("a\u0000b\u001b[31m\r\n\t\u007f")).toBe("a⟨NUL⟩b⟨ESC⟩[31m⟨CR⟩⟨LF⟩⟨TAB⟩⟨DEL⟩");
  expect(visible("\u0085\u009b")).toBe("⟨U+0085⟩⟨U+009B⟩");
});

test.each([
  ["left-to-right embedding to right-to-left override", "\u202a\u202b\u202c\u202d\u202e"],
  ["isolates", "\u2066\u2067\u2068\u2069"],
  ["marks", "\u200e\u200f\u061c"],
  ["zero width", "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e"],
  ["spaces that are none", "\u00a0\u2003\u202f\u3000\u3164"],
  ["lines of their own", "\u2028\u2029\u0085"],
  ["tags and halves of pairs", "\u{e0041}\u{e0020}\ud800"],
])("%s become visible", (_, text) => {
  const found = pieces(text);
  expect(found).toHaveLength([...text].length);
  for (const piece of found) {
    expect(piece.isStandIn).toBe(true);
    expect(piece.text).toMatch(/^⟨U\+[0-9A-F]{4,6}⟩$/);
  }
});

test("a turned name is told by name when pointed at", () => {
  expect(pieces("x\u202Egpj")[1]).toEqual({
    text: "⟨U+202E⟩",
    isStandIn: true,
    title: "right-to-left override, U+202E",
  });
});

test("lines and tabs stay where a text has lines", () => {
  expect(pieces("a\n\tb\r", "lines").map((piece) => piece.text)).toEqual(["a\n\tb", "⟨CR⟩"]);
});

test("a very long text is cut and says so", () => {
  const found = pieces("x".repeat(TEXT_LENGTH_MAX + 7));
  expect(found.at(-1)).toEqual({ text: "… 7 more characters", isStandIn: true, title: "cut here" });
  expect(found[0]?.text).toHaveLength(TEXT_LENGTH_MAX);
});
