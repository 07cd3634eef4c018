// Puts a .br and a .gz beside every built file that gains by it, and fails when the pages have
// grown too large to be sent: the limit is for everything together, as Brotli.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const FOLDER = "dist";
const BYTES_MAX = 150 * 1024;

const files = readdirSync(FOLDER, { recursive: true })
  .map((name) => join(FOLDER, String(name)))
  .filter((path) => statSync(path).isFile() && !/\.(br|gz)$/.test(path));

let total = 0;
for (const path of files) {
  const bytes = readFileSync(path);
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  const gzip = gzipSync(bytes, { level: 9 });
  const isWorthIt = brotli.length < bytes.length;
  if (isWorthIt) {
    writeFileSync(`${path}.br`, brotli);
    writeFileSync(`${path}.gz`, gzip);
  }
  const sent = isWorthIt ? brotli.length : bytes.length;
  total += sent;
  console.log(`${path}: ${bytes.length} bytes, ${gzip.length} as gzip, ${sent} as Brotli`);
}
console.log(`together: ${total} bytes of at most ${BYTES_MAX}`);
if (total > BYTES_MAX) {
  console.error("the pages are too large");
  process.exit(1);
}
