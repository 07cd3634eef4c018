// A stand-in for the server while the pages are worked on: invented numbers, and hostile text in
// every field. Nothing is tested against it that a real server can show.
//
//   node tests/stand-in/serve.mjs [PORT] [--look]      the pages of dist/ and an API of this shape
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import * as made from "./made.mjs";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** Starts it; `port` 0 takes a free one. Gives the server. */
export function start(port = 0, role = "operate") {
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://stand-in");
    response.setHeader("Content-Security-Policy", POLICY);
    if (url.pathname.startsWith("/v1/")) return api(url, request, response, role);
    const name = normalize(url.pathname === "/" ? "/index.html" : url.pathname);
    const path = join(DIST, name);
    if (!path.startsWith(DIST) || !existsSync(path)) return response.writeHead(404).end();
    response.setHeader("Content-Type", TYPES[extname(name)] ?? "application/octet-stream");
    return createReadStream(path).pipe(response);
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}

function api(url, request, response, role) {
  const path = url.pathname.slice(4);
  const json = (body, status = 200) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(body));
  };
  if (request.method === "POST") {
    if (path === "login" || path === "logout") return json({ text: "done" });
    if (path === "config/check") return json({ ok: false, faults: made.faults, warnings: [] });
    if (path === "config/diff") return json({ diff: made.diff });
    if (path === "programs/stack") return json({ text: made.stack });
    return json({ text: `${path}: done` });
  }
  if (path === "session") return json({ role, user: "stand-in", csrf_header: "X-Hob-Admin" });
  if (path === "live") {
    return stream(response, 1000, () =>
      url.searchParams.getAll("page").map((topic) => {
        const [page, query] = topic.split("?");
        return [page, JSON.stringify(made.live(page, new URLSearchParams(query)))];
      }),
    );
  }
  if (path === "watch") {
    return stream(response, 120, () => [["", JSON.stringify(made.event())]]);
  }
  if (/^logs\/[^/]+\/tail$/.test(path)) {
    return stream(response, 700, () => [["line", JSON.stringify(made.logLine())]]);
  }
  const body = made.answer(path, url.searchParams);
  return body === null ? json({ text: "there is nothing here" }, 404) : json(body);
}

function stream(response, everyMs, make) {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = () => {
    for (const [name, data] of make()) {
      response.write(`${name && `event: ${name}\n`}data: ${data}\n\n`);
    }
  };
  send();
  const timer = setInterval(send, everyMs);
  response.on("close", () => clearInterval(timer));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.argv.find((word) => /^\d+$/.test(word)) ?? 0);
  const server = await start(port, process.argv.includes("--look") ? "look" : "operate");
  console.log(`http://127.0.0.1:${server.address().port}/`);
}
