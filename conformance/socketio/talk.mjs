// Browsers that talk to each other over Socket.IO, each in every way that it has, until a process of the chat is killed.
// For each case a line of JSON is printed: its name, and what was wrong.
//
//     node talk.mjs PACKAGE_JSON CHROMIUM URL
//
// Playwright is the one of the package.
import { createRequire } from "node:module";

const [packageJson, executablePath, base] = process.argv.slice(2);
const { chromium } = createRequire(packageJson)("playwright-core");
const CLIENTS = ["Ann", "Ben", "Cy", "Di", "Ed", "Flo"];
const MESSAGES = 20;
const WAYS = [["polling"], ["websocket"], ["polling", "websocket"]];

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

const tell = (name, wrongs) => {
  console.log(JSON.stringify({ case: name, wrong: wrongs.join("; ") }));
};
const unless = (isRight, wrong) => (isRight ? [] : [wrong]);

/** Somebody in a browser of their own, connected in one of the ways. */
async function client(name, transports) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const wrongs = [];
  page.on("console", (message) => {
    if (message.type() === "error") wrongs.push(`${name}: ${message.text()}`);
  });
  await page.goto(`${base}/chat.html`);
  await page.evaluate((ways) => begin(ways), transports);
  // What is said before is not for them.
  await page.waitForFunction(() => socket.connected);
  return { name, page, wrongs };
}

/** Says so much as everybody at once; the process of each. */
async function talk(clients, count) {
  const say = ({ name, page }) => page.evaluate(([who, often]) => say(who, often), [name, count]);
  return Promise.all(clients.map(say));
}

for (const ways of WAYS) {
  const way = ways.join(" then ");
  const clients = [];
  for (const name of CLIENTS) clients.push(await client(name, ways));
  const members = await talk(clients, MESSAGES);
  const stray = members.filter((some) => some.length !== 1);
  tell(`${way}: a client stays with its process`, unless(!stray.length, JSON.stringify(members)));
  const pids = new Set(members.flat());
  tell(`${way}: both processes have clients`, unless(pids.size === 2, JSON.stringify(members)));

  const wrongs = [];
  for (const [index, { name, page, wrongs: printed }] of clients.entries()) {
    const room = CLIENTS.filter((_, at) => members[at][0] === members[index][0]);
    const wanted = room.length * MESSAGES;
    await page.waitForFunction((count) => heard.length >= count, wanted);
    await page.waitForFunction((last) => socket.io.engine.transport.name === last, ways.at(-1));
    const [heard, own] = await page.evaluate(() => [globalThis.heard, globalThis.wrongs]);
    for (const speaker of room) {
      const said = heard.filter((text) => text.startsWith(`${speaker} `));
      const all = Array.from({ length: MESSAGES }, (_, at) => `${speaker} ${at}`);
      const isSame = JSON.stringify(said) === JSON.stringify(all);
      wrongs.push(...unless(isSame, `${name} heard ${said}`));
    }
    wrongs.push(...unless(heard.length === wanted, `${name} heard ${heard.length}`));
    wrongs.push(...own, ...printed);
  }
  tell(`${way}: everybody hears everybody there, in order`, wrongs);
  if (ways === WAYS.at(-1)) {
    process.kill(members[0][0], "SIGKILL");
    for (const [index, { page }] of clients.entries()) {
      if (members[index][0] !== members[0][0]) continue;
      await page.waitForFunction(() => globalThis.wrongs.length > 0 && socket.connected);
    }
    const after = new Set((await talk(clients, 1)).flat());
    const left = [...pids].filter((pid) => pid !== members[0][0]);
    tell(
      "who is left has all of them",
      unless(after.size === 1 && after.has(left[0]), `${[...after]}`),
    );
  }
  await Promise.all(clients.map(({ page }) => page.context().close()));
}
await browser.close();
