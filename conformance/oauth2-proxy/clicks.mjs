// What people do who are asked to sign in. For each case a line of JSON is printed: its name, and what was wrong.
//
//     node clicks.mjs PACKAGE_JSON CHROMIUM URL
import { createRequire } from "node:module";

const [packageJson, executablePath, base] = process.argv.slice(2);
const { chromium } = createRequire(packageJson)("playwright-core");

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"],
});

let failed = false;
/** A case; those after one that fails have nothing to stand on. */
async function step(name, does) {
  if (failed) return;
  let wrong = "";
  try {
    wrong = (await does()) ?? "";
  } catch (error) {
    wrong = String(error).slice(0, 400);
  }
  failed = wrong !== "";
  console.log(JSON.stringify({ case: name, wrong }));
}

async function person() {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(60_000);
  return context.newPage();
}

async function signIn(page, path, name) {
  await page.goto(base + path);
  await page.fill("input[name=login]", name);
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.click("button[type=submit]");
  await page.waitForURL(`${base}${path}`);
}

const same = (found, wanted) => {
  const [a, b] = [found, wanted].map((value) => JSON.stringify(value));
  return a === b ? "" : `${a}, not ${b}`;
};
const told = async (page) => JSON.parse(await page.locator("body").textContent());
const status = async (page, path, more) => (await page.context().request.get(base + path, { maxRedirects: 0, ...more })).status();
const cookie = async (page) => (await page.context().cookies(base)).find((one) => one.name === "_oauth2_proxy")?.value;

const ann = await person();
await step("who asks is led to the provider and back to the page, query and all", async () => {
  await signIn(ann, "/staff/desk?drawer=2&open=1", "ann");
  const program = await told(ann);
  return same(
    [program.REMOTE_USER, program.AUTH_TYPE, program.EMAIL],
    ["ann", "forward", "ann@example.org"],
  );
});
await step("what is sent under the names of the service is not told", async () => {
  const headers = { "X-Auth-Request-User": "eve", "X-Auth-Request-Email": "eve@example.org", "Remote-User": "eve" };
  const answer = await ann.context().request.get(`${base}/staff/`, { headers });
  const program = await answer.json();
  return same([program.REMOTE_USER, program.USER], ["ann", "ann"]);
});
await step("session is renewed with an answer and goes on", async () => {
  const first = await cookie(ann);
  const until = Date.now() + 60_000;
  while ((await cookie(ann)) === first) {
    if (Date.now() > until) return "the cookie has not changed";
    await ann.goto(`${base}/staff/`);
  }
  return same((await told(ann)).REMOTE_USER, "ann");
});
await step("who is in all groups may", async () => same(await status(ann, "/board/"), 200));

const bob = await person();
await step("who is not in all of them may not", async () => {
  await signIn(bob, "/staff/", "bob");
  return same(await status(bob, "/board/"), 403);
});
const eve = await person();
await step("who is in no group may not", async () => {
  await eve.goto(`${base}/staff/`);
  await eve.fill("input[name=login]", "eve");
  await eve.fill("input[name=password]", "any");
  await eve.click("button[type=submit]");
  await eve.click("button[type=submit]");
  await eve.waitForURL(`${base}/staff/`);
  return same(await status(eve, "/staff/"), 403);
});
await step("cookie that was changed is none", async () => {
  const value = await cookie(bob);
  const changed = value.replace(/^(.)/, (first) => (first === "A" ? "B" : "A"));
  const headers = { Cookie: `_oauth2_proxy=${changed}` };
  const nobody = await person();
  return same(await status(nobody, "/staff/", { headers }), 302);
});
await step("way back leads to no other host", async () => {
  const nobody = await person();
  const answer = await nobody.context().request.get(`${base}/oauth2/start?rd=https://evil.example.org/`, { maxRedirects: 0 });
  const state = decodeURIComponent(new URL(answer.headers().location).searchParams.get("state"));
  return state.includes("evil") ? `state is ${state}` : "";
});
await step("who has signed out is asked again", async () => {
  await ann.context().request.get(`${base}/oauth2/sign_out`, { maxRedirects: 0 });
  return same(await status(ann, "/staff/"), 302);
});
await browser.close();
