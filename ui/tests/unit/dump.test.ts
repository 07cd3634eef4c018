// Bytes as hex and text.
import { expect, test } from "vitest";
import { DUMP_BYTES_MAX, dump, fromHex } from "../../src/text/dump";

test("sixteen bytes to a line, dots for what is not printable", () => {
  const bytes = new TextEncoder().encode("GET / HTTP/1.1\r\n\u001bä");
  expect(dump(bytes)).toEqual([
    {
      offset: "000000",
      hex: "47 45 54 20 2f 20 48 54  54 50 2f 31 2e 31 0d 0a",
      text: "GET / HTTP/1.1··",
    },
    { offset: "000010", hex: `1b c3 a4${" ".repeat(40)}`, text: "···" },
  ]);
});

test("hex is read with spaces, and nothing else is", () => {
  expect(fromHex("47 45\n54")).toEqual(new Uint8Array([0x47, 0x45, 0x54]));
  expect(fromHex("4")).toBeNull();
  expect(fromHex("zz")).toBeNull();
});

test("a dump has an end", () => {
  expect(dump(new Uint8Array(DUMP_BYTES_MAX * 2))).toHaveLength(DUMP_BYTES_MAX / 16);
});
