// What is clicked in WordPress, from its installation to the end of a session. For each case a line of JSON is printed:
// its name, and what was wrong.
//
//     node clicks.mjs PACKAGE_JSON CHROMIUM URL FOLDER
//
// Playwright is the one of the package; FOLDER has a picture to upload, kettle.png.
import { createRequire } from "node:module";
import { join } from "node:path";

const [packageJson, executablePath, base, folder] = process.argv.slice(2);
const { chromium } = createRequire(packageJson)("playwright-core");
const PASSWORD = "the kettle is warm";
const PICTURE_WIDTH = 1600;

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost"],
});
const context = await browser.newContext({ ignoreHTTPSErrors: true });
context.setDefaultTimeout(60_000);
const page = await context.newPage();

// What nobody looks for, and must not be there.
const wrongs = [];
page.on("console", (message) => {
  if (message.type() === "error") wrongs.push(`${message.text()} (${message.location().url})`);
});
page.on("pageerror", (error) => wrongs.push(String(error)));
page.on("response", (response) => {
  if (response.status() >= 400) wrongs.push(`${response.status()} for ${response.url()}`);
});
// Pictures from elsewhere: of people, and of what is new.
const isElsewhere = (url) => url.protocol === "https:" && url.hostname !== "localhost";
const EMPTY = { contentType: "image/svg+xml", body: '<svg xmlns="http://www.w3.org/2000/svg"/>' };
await context.route(isElsewhere, (route) => route.fulfill(EMPTY));

let failed = false;
/** A case; those after one that fails have nothing to stand on. */
async function step(name, does) {
  if (failed) return;
  wrongs.length = 0;
  let wrong = "";
  try {
    wrong = (await does()) ?? "";
  } catch (error) {
    failed = true;
    wrong = `${String(error).slice(0, 300)} at ${page.url()}`;
  }
  const all = [wrong, ...wrongs].filter((text) => text !== "");
  console.log(JSON.stringify({ case: name, wrong: all.join("; ") }));
}

const same = (found, wanted) => (found === wanted ? "" : `${found}, not ${wanted}`);
const at = (path) => page.goto(base + path);

await step("it is installed", async () => {
  await at("/");
  await page.waitForURL("**/wp-admin/install.php");
  await page.fill("#weblog_title", "Kettles");
  await page.fill("#user_login", "ben");
  await page.fill("#pass1", PASSWORD);
  await page.fill("#admin_email", "ben@example.org");
  const weak = page.locator("#pw_weak");
  if (await weak.isVisible()) await weak.check();
  await page.click("#submit");
  await page.locator("h1", { hasText: "Success!" }).waitFor();
});

const logIn = async () => {
  await page.fill("#user_login", "ben");
  await page.fill("#user_pass", PASSWORD);
  await page.click("#wp-submit");
  await page.locator("#wpadminbar").waitFor();
};

await step("a wrong password is refused", async () => {
  await at("/wp-login.php");
  await page.fill("#user_login", "ben");
  await page.fill("#user_pass", "cold");
  await page.click("#wp-submit");
  await page.locator("#login_error").waitFor();
});

await step("log in", async () => {
  await at("/wp-admin/");
  await page.waitForURL("**/wp-login.php?redirect_to=*");
  await logIn();
  return same(new URL(page.url()).pathname, "/wp-admin/");
});

await step("pretty permalinks", async () => {
  await at("/wp-admin/options-permalink.php");
  await page.check("#custom_selection");
  await page.fill("#permalink_structure", "/%year%/%postname%/");
  await page.click("#submit");
  await page.locator("#setting-error-settings_updated").waitFor();
});

await step("first page", async () => {
  await at("/");
  await page.click("text=Hello world!");
  await page.locator("h1", { hasText: "Hello world!" }).waitFor();
  const year = new Date().getFullYear();
  return same(new URL(page.url()).pathname, `/${year}/hello-world/`);
});

let published = "";
await step("write a post with a picture", async () => {
  await at("/wp-admin/post-new.php");
  const welcome = page.locator("[aria-label='Close dialog'], [aria-label='Close']").first();
  await welcome.click();
  await page.locator("[aria-label='Add title']").fill("The kettle is on");
  await page.keyboard.press("Enter");
  await page.keyboard.type("It sings.");
  await page.keyboard.press("Enter");
  await page.keyboard.type("/image");
  await page.locator("[role=option]", { hasText: "Image" }).first().click();
  await page
    .locator("[data-type='core/image'] input[type=file]")
    .setInputFiles(join(folder, "kettle.png"));
  await page.locator("[data-type='core/image'] img[src^=http]").waitFor();
  await page.locator(".editor-post-publish-button__button").click();
  await page.locator(".editor-post-publish-panel .editor-post-publish-button").click();
  const link = page.locator(".post-publish-panel__postpublish-buttons a", { hasText: "View Post" });
  published = await link.getAttribute("href");
  return same(new URL(published).pathname, `/${new Date().getFullYear()}/the-kettle-is-on/`);
});

await step("see it, with its picture", async () => {
  await page.goto(published);
  const image = page.locator(".wp-block-image img");
  await image.waitFor();
  const width = await image.evaluate(async (element) => {
    await element.decode();
    return element.naturalWidth;
  });
  const text = await page.locator(".entry-content").textContent();
  return text.includes("It sings.") ? same(width > 0 && width <= PICTURE_WIDTH, true) : text;
});

await step("the picture is in the library", async () => {
  await at("/wp-admin/upload.php?mode=grid");
  await page.locator(".attachment .thumbnail").first().click();
  return same(
    await page.locator(".media-modal .filename").first().textContent(),
    "File name: kettle.png",
  );
});

await step("search, feed and a page that is not there", async () => {
  await at("/?s=sings");
  await page.click("text=The kettle is on");
  const feed = await context.request.get(`${base}/feed/`);
  if (!(await feed.text()).includes("<title>The kettle is on</title>")) return "the feed lacks it";
  const none = await context.request.get(`${base}/2001/none/`);
  return (
    same(none.status(), 404) ||
    ((await none.text()).includes("Kettles") ? "" : "it is not WordPress's")
  );
});

await step("comment as a visitor", async () => {
  const visitor = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  await visitor.goto(published);
  await visitor.fill("#comment", "So it does.");
  await visitor.fill("#author", "Ann");
  await visitor.fill("#email", "ann@example.org");
  await visitor.click("#submit");
  await visitor.locator("text=Your comment is awaiting moderation").first().waitFor();
  await visitor.context().close();
});

await step("log out", async () => {
  await at("/wp-admin/");
  await page.hover("#wp-admin-bar-my-account");
  await page.click("#wp-admin-bar-logout a");
  await page.waitForURL("**/wp-login.php?loggedout=true*");
  await at("/wp-admin/");
  await page.waitForURL("**/wp-login.php?redirect_to=*");
});

await browser.close();
