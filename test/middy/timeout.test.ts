import { setTimeout as sleep } from "node:timers/promises";
import { LeaseClient, type LeaseEvent } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { InvocationEndingError, type LeaseLockOptions, type Lock, leased, leaseLock } from "@leasehold/middy";
import middy, { type MiddlewareObj } from "@middy/core";
import { describe, expect, test } from "vitest";
import type { LambdaContext } from "./support.ts";

// Middy's early timeout is a timer of the machine's, and so are all clocks here.

function setUp() {
  const store = new MemoryLeaseStore();
  const events: LeaseEvent[] = [];
  const client = new LeaseClient({ store, clockSkewMs: 0, onEvent: (event) => events.push(event) });
  const context = (timeoutMs: number, awsRequestId = "1"): LambdaContext => {
    const end = performance.now() + timeoutMs;
    const getRemainingTimeInMillis = (): number => Math.max(0, Math.floor(end - performance.now()));
    return { functionName: "job", awsRequestId, getRemainingTimeInMillis } as LambdaContext;
  };
  return { store, client, events, context, options: { client, key: "job" } satisfies LeaseLockOptions };
}

/** A handler that does not heed its signal. */
function deafHandler() {
  let lock: Lock | undefined;
  let finish: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const handler = async (_event: unknown, context: LambdaContext): Promise<string> => {
    lock = context.lock;
    await done;
    return "late";
  };
  return { handler, finish, lock: () => lock };
}

const swallow: MiddlewareObj = { onError: () => "swallowed" };
const plain: MiddlewareObj = { after: () => undefined };

describe("an early timeout while the handler runs", () => {
  test.each<[string, { timeoutEarlyResponse?: () => unknown; timeoutEarlyInMillis?: number }, MiddlewareObj]>(
    [
      ["middy's own error", {}, plain],
      ["middy's own error, far from the end", { timeoutEarlyInMillis: 400 }, plain],
      ["a response of the user's", { timeoutEarlyResponse: () => ({ statusCode: 408 }) }, plain],
      [
        "an error of the user's",
        {
          timeoutEarlyResponse: () => {
            throw new Error("out of time");
          },
        },
        plain,
      ],
      ["an error that an inner middleware swallows", {}, swallow],
    ],
  )("by %s leaves the lease to expire", async (_, plugin, other) => {
    const { client, context, options, events } = setUp();
    const { handler, finish, lock } = deafHandler();
    const app = middy(handler, plugin).use(leaseLock(options)).use(other);

    await Promise.resolve(app({}, context(450))).catch(() => undefined);

    expect(lock()?.signal.reason).toBeInstanceOf(InvocationEndingError);
    expect((await client.inspect("job"))?.owner).toBe("job/1");
    expect(events.map(({ type }) => type)).toEqual(["acquired"]);
    finish();
    await sleep(10);
    expect(lock()?.lease.held).toBe(true);
  });

  test("by an early response far from the end needs the option of the same name", async () => {
    const { client, context, options } = setUp();
    const { handler, finish } = deafHandler();
    const plugin = { timeoutEarlyInMillis: 400, timeoutEarlyResponse: () => "early" };
    const app = middy(handler, plugin).use(
      leaseLock({ ...options, timeoutEarlyInMillis: plugin.timeoutEarlyInMillis }),
    );

    expect(await app({}, context(450))).toBe("early");
    expect((await client.inspect("job"))?.owner).toBe("job/1");
    finish();
  });

  test("stops the heartbeat, so that the lease does expire", async () => {
    const { client, context, options } = setUp();
    const { handler, finish } = deafHandler();
    const app = middy(handler).use(leaseLock({ ...options, lockAtMostForMs: 120, heartbeat: true }));
    await expect(app({}, context(300))).rejects.toMatchObject({ name: "TimeoutError" });
    await sleep(130);
    expect(await client.tryAcquire("job")).toBeDefined();
    finish();
  });
});

test.each([
  ["long before the end does not keep the lock", 10_000, undefined],
  ["close to the end keeps the lock to be safe", 200, "job/1"],
])("an error that is merely named TimeoutError %s", async (_, timeoutMs, holder) => {
  const { client, context, options } = setUp();
  const app = middy(async () => {
    throw new DOMException("too slow", "TimeoutError");
  }).use(leaseLock(options));
  await expect(app({}, context(timeoutMs))).rejects.toThrow("too slow");
  expect((await client.inspect("job"))?.owner).toBe(holder);
});

describe("the retry of an asynchronous event in the process whose handler still runs", () => {
  test.each([
    ["", {}],
    [", with resume where there is no time to wait for its end", { resume: true }],
  ])("rejects, and is not skipped: the work of the attempt before is not done%s", async (_, more) => {
    const { context, options } = setUp();
    const { handler, finish } = deafHandler();
    const app = middy(handler).use(leaseLock({ ...options, ...more, lockAtMostForMs: 60_000 }));
    await expect(app({}, context(60, "1"))).rejects.toMatchObject({ name: "TimeoutError" });
    const retry = Promise.resolve(app({}, context(60, "1")));
    await expect(retry).rejects.toMatchObject({ name: "LeaseUnavailableError", holder: "job/1" });
    finish();
  });

  test("with resume, leased inside middy keeps the lock while its handler runs on, and lets it go when that ends", async () => {
    const { client, context, options } = setUp();
    const runs: Lock[] = [];
    let finish: () => void = () => undefined;
    const inner = leased({ ...options, resume: true }, async (_event: unknown, _context, lock) => {
      runs.push(lock);
      if (runs.length > 1) return;
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    const app = middy(inner);
    await expect(app({}, context(100, "1"))).rejects.toMatchObject({ name: "TimeoutError" });
    expect(runs[0]?.signal.aborted).toBe(true);
    expect((await client.inspect("job"))?.owner).toBe("job/1");

    const retry = app({}, context(4_000, "1"));
    await sleep(20);
    expect(runs).toHaveLength(1);
    finish();
    await retry;
    expect(runs).toHaveLength(2);
    expect(runs[1]?.lease.token).not.toBe(runs[0]?.lease.token);
    expect(await client.inspect("job")).toBeUndefined();
  });
});
