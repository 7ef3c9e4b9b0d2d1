// @module-tag long
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeUnpaidOrdersKey as key } from "../../../functions/close-unpaid-orders/job.ts";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { changedAssembly } from "../../support/assembly.ts";
import { hang } from "../../support/proxy-behaviours.ts";
import { nextTrigger, Shop } from "../../support/shop.ts";
import { takeableAt } from "../../support/watching.ts";

/** What the job has in the template is too long to wait for. */
const timeoutSeconds = 4;
let it: TestApp;

beforeAll(async () => {
  const assemblyDir = await changedAssembly("short-timeout", (resources) => {
    const [id] = Object.keys(resources).filter((name) => /^UnpaidOrdersClose[0-9A-F]{8}$/.test(name));
    const properties = resources[id ?? ""]?.Properties;
    if (properties?.Timeout === undefined) throw new Error("there is no such function");
    properties.Timeout = timeoutSeconds;
  });
  it = await startTestApp({ assemblyDir });
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

test("a run that hits its function's timeout keeps its lease to the end, and nobody gets in before; the next run does the rest", async () => {
  const shop = await Shop.open(it, 3);
  // The write lands and is never answered; heartbeats go on.
  it.proxy.always(shop.closes(1), hang());
  const run = shop.run(nextTrigger());
  await it.proxy.arrival(shop.closes(1));
  const before = await it.leases.inspect(key);
  expect(await run).toMatchObject({
    functionError: "Unhandled",
    payload: {
      errorType: "Sandbox.Timedout",
      errorMessage: expect.stringContaining("timed out after 4.00 seconds"),
    },
  });
  const endedAt = Date.now();
  const left = await it.leases.inspect(key);
  expect(left).toMatchObject({ token: before?.token });
  expect(left?.expiresAt).toBeGreaterThan(before?.expiresAt ?? Number.POSITIVE_INFINITY);
  it.proxy.reset();

  const successor = await it.leases.acquire(key, { waitMs: 10_000 });
  expect(successor.acquiredAt).toBeGreaterThanOrEqual(takeableAt(left, endedAt));
  await successor.release();
  expect((await shop.run(nextTrigger())).payload).toMatchObject({ result: "ran", closed: 1 });
  expect(await shop.state()).toEqual({ closings: [1, 1, 1], restocked: 3 });
});
