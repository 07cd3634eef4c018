// One stream for all that a tab follows, and none that nobody sees.
import { beforeEach, expect, test, vi } from "vitest";
import type { Listener } from "../../src/api/events";

vi.stubGlobal("location", new URL("http://127.0.0.1/"));
const { LiveStream } = await import("../../src/api/live");

let paths: string[];
let closed: string[];
let listener: Listener;
let isSeen: boolean;

beforeEach(() => {
  [paths, closed, isSeen] = [[], [], true];
});

const stream = (): InstanceType<typeof LiveStream> =>
  new LiveStream(
    (path, given) => {
      paths.push(path);
      listener = given;
      return () => closed.push(path);
    },
    () => isSeen,
  );
const settled = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve));
const follower = () => ({ onValue: vi.fn(), onState: vi.fn() });

test("all that is followed comes over one stream, each to those who follow it", async () => {
  const live = stream();
  const [overview, routes] = [follower(), follower()];
  live.follow("overview", overview);
  live.follow("routes?limit=6", routes);
  await settled();
  expect(paths).toEqual(["v1/live?page=overview&page=routes%3Flimit%3D6"]);
  listener.onEvent({ name: "routes", data: '{"routes":[]}' });
  listener.onEvent({ name: "overview", data: "cut {" });
  listener.onEvent({ name: "dropped", data: '{"count":1}' });
  expect(routes.onValue.mock.calls).toEqual([[{ routes: [] }]]);
  expect(overview.onValue).not.toHaveBeenCalled();
  listener.onState?.({ is: "refused", why: "no such page" });
  expect(overview.onState).toHaveBeenCalledOnce();
  expect(routes.onState).toHaveBeenCalledOnce();
});

test("a page that takes the place of another needs no more than one new stream", async () => {
  const live = stream();
  const leave = live.follow("running", follower());
  await settled();
  leave();
  live.follow("connections", follower());
  live.follow("connections", follower());
  await settled();
  expect(paths).toEqual(["v1/live?page=running", "v1/live?page=connections"]);
  expect(closed).toEqual(["v1/live?page=running"]);
});

test("the same page again keeps the stream; nothing is sent to a tab that nobody sees", async () => {
  const live = stream();
  const leave = live.follow("running", follower());
  await settled();
  leave();
  const leaveAgain = live.follow("running", follower());
  await settled();
  expect([paths.length, closed.length]).toEqual([1, 0]);
  isSeen = false;
  live.renewSoon();
  await settled();
  expect([paths.length, closed.length]).toEqual([1, 1]);
  isSeen = true;
  live.renewSoon();
  await settled();
  expect([paths.length, closed.length]).toEqual([2, 1]);
  leaveAgain();
  await settled();
  expect([paths.length, closed.length]).toEqual([2, 2]);
});
