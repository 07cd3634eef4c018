// A real hob in a folder of its own, with scripts that are slow, fail and say hostile things, and a
// real browser to look at its pages with.
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, type Page, chromium } from "playwright-core";
import { afterAll } from "vitest";

/** What a hostile visitor or script says: markup, and characters that turn or steer. */
export const HOSTILE = `<img src=x onerror=globalThis.ran=1>"'><script>globalThis.ran=1</script>`;

/** The program under test. */
const HOB = process.env["HOB"] ?? join(process.env["CARGO_TARGET_DIR"] ?? "../target", "debug/hob");
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const NOBODY = 65_534;
const IS_ROOT = process.getuid?.() === 0;

/** Hash of `kettle`, cheap to check. */
const KETTLE =
  "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$eWyzJ+jQbIGLIsexKTS96aHPoh46bPZb+Fz/AzMuStc";

export const CONFIG = `default_log = "main"
[admin]
address = "127.0.0.1:0"
edit = true

[[admin.user]]
name = "ben"
password = "${KETTLE}"

[[log]]
name = "main"
file = "run/access.log"
format = "combined"

[[listen]]
address = "127.0.0.1:0"

[[site]]
root = "site"
[[site.route]]
path = "/cgi-bin/*"
cgi = "cgi-bin"

`;

const SCRIPTS: Record<string, string> = {
  "cgi-bin/slow": "#!/bin/sh\nsleep 0.4\nprintf 'Content-Type: text/plain\\n\\nslow\\n'\n",
  "cgi-bin/quick": "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nquick\\n'\n",
  "cgi-bin/hostile": `#!/bin/sh\nprintf '%s \\033[31m\\n' '${HOSTILE.replaceAll("'", `'"'"'`)}' >&2\nexit 3\n`,
};

/** A program that stays, for `wsgi = "kept:application"`: it answers once it has a whole body. */
const KEPT = `def application(environ, start_response):
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"kept"]
`;

/** A program that takes connections from its standard input, for `scgi`. */
const ASKED = `import socket
listener = socket.socket(fileno=0)
while True:
    connection, _ = listener.accept()
    if connection.recv(65536):
        connection.sendall(b"Content-Type: text/plain\\r\\n\\r\\nasked")
    connection.close()
`;

/** A program that stays for its visitor, and tells the handle. */
const SHOP = `import hob
for request in hob.requests():
    handle = request.environ["HTSession"]
    head = [("Accept-HTSession", handle), ("Content-Type", "text/plain")]
    request.respond(200, head, handle)
`;

/** Servers that run. */
const opened = new Set<Place>();

// A test that fails leaves its own where it is, and one that is broken off comes to no end at all.
afterAll(async () => {
  await Promise.all([...opened].map((place) => place.close()));
});
process.once("exit", () => {
  for (const place of opened) place.kill();
});

/** A running server and where it is. */
export class Place {
  private readonly held: Socket[] = [];

  private constructor(
    readonly folder: string,
    private readonly child: ChildProcess,
    private readonly printed: { text: string },
  ) {}

  /** Starts hob and waits until it listens. */
  static async open(config = CONFIG): Promise<Place> {
    const folder = mkdtempSync(join(tmpdir(), "hob-pages-"));
    for (const name of ["site", "cgi-bin", "run"]) mkdirSync(join(folder, name));
    writeFileSync(join(folder, "site/index.html"), "<title>shop</title>\n");
    writeFileSync(join(folder, "hob.toml"), config);
    for (const [name, text] of Object.entries(SCRIPTS)) writeFileSync(join(folder, name), text);
    for (const name of Object.keys(SCRIPTS)) chmodSync(join(folder, name), 0o755);
    writeFileSync(join(folder, "kept.py"), KEPT);
    writeFileSync(join(folder, "asked.py"), ASKED);
    writeFileSync(join(folder, "shop.py"), SHOP);
    cpSync("../lang/python/src", join(folder, "lib"), { recursive: true });
    copyFileSync(HOB, join(folder, "hob"));
    if (IS_ROOT) {
      for (const name of ["", "site", "cgi-bin", "run", "hob.toml"]) {
        chownSync(join(folder, name), NOBODY, NOBODY);
      }
    }
    const { child, printed } = runIn(folder, ["serve", "--config", "hob.toml"]);
    const place = new Place(folder, child, printed);
    opened.add(place);
    await place.said(/admin pages on \S+/);
    await place.said(/listening on \S+/);
    return place;
  }

  /** The URL that was printed, with its token. */
  async adminUrl(): Promise<string> {
    return (await this.said(/admin pages on (http:\S+)/))[1]!;
  }

  /** Another URL with a token: each is good for one login. */
  async anotherUrl(): Promise<string> {
    const { child, printed } = this.run(["status", "--admin-url"]);
    await new Promise((resolve) => child.once("close", resolve));
    const found = /http:\S+/.exec(printed.text);
    if (!found) throw new Error(`hob status --admin-url said: ${printed.text}`);
    return found[0];
  }

  /** Where the site is. */
  async site(): Promise<string> {
    const found = await this.said(/listening on (?:http:\/\/)?(127\.0\.0\.1:\d+)/);
    return `http://${found[1]!}`;
  }

  /** Asks the site for something, and takes whatever comes. */
  async get(path: string, headers: Record<string, string> = {}): Promise<number> {
    const response = await fetch(`${await this.site()}${path}`, { headers });
    await response.arrayBuffer();
    return response.status;
  }

  /** Sends the site this and reads until an answer has begun; closed with the server. */
  async hold(sent: string, isAnswered = true): Promise<void> {
    const { hostname, port } = new URL(await this.site());
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(sent);
    if (isAnswered) await new Promise((resolve) => socket.once("data", resolve));
    this.held.push(socket);
  }

  /** Has a new server take over; the one before stays for the visits that it keeps. */
  async upgrade(): Promise<void> {
    const { child, printed } = this.run(["upgrade"]);
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`hob upgrade said: ${printed.text}`);
  }

  /** Ends the server, and waits for its end. */
  async stop(): Promise<void> {
    for (const socket of this.held) socket.destroy();
    if (this.child.exitCode !== null) return;
    const end = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await end;
  }

  /** Ends the server and removes the folder. */
  async close(): Promise<void> {
    await this.stop();
    opened.delete(this);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Ends the server where nothing can be waited for any more. */
  kill(): void {
    this.child.kill("SIGTERM");
  }

  run(words: string[]): { child: ChildProcess; printed: { text: string } } {
    return runIn(this.folder, words);
  }

  private async said(what: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = what.exec(this.printed.text);
      if (found) return found;
      if (this.child.exitCode !== null) throw new Error(`hob ended:\n${this.printed.text}`);
      await new Promise((resolve) => {
        this.child.stdout?.once("data", resolve);
        this.child.stderr?.once("data", resolve);
        this.child.once("exit", resolve);
      });
    }
  }
}

function runIn(
  folder: string,
  words: string[],
): { child: ChildProcess; printed: { text: string } } {
  const run = join(folder, "run");
  const child = spawn(join(folder, "hob"), words, {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      PYTHONPATH: join(folder, "lib"),
      XDG_RUNTIME_DIR: run,
      XDG_STATE_HOME: run,
    },
    ...(IS_ROOT ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  const printed = { text: "" };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part: Buffer) => (printed.text += part.toString()));
  }
  return { child, printed };
}

/** Starts the browser. */
export function browser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

/** A browser that is logged in by the printed URL. */
export async function operator(of: Browser, place: Place, width = 1280): Promise<Page> {
  const context = await of.newContext({ viewport: { width, height: 860 } });
  return loggedIn(context, await place.anotherUrl());
}

async function loggedIn(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  return page;
}

/** Another tab of the same browser at a page. */
export async function at(page: Page, hash: string): Promise<void> {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.locator("h1").first().waitFor();
}

/** What a page complains about: script errors, refused resources, and words of refusal. */
export function complaints(page: Page): string[] {
  const found: string[] = [];
  page.on("pageerror", (error) => found.push(`${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") found.push(`${page.url()}: ${message.text()}`);
  });
  return found;
}
