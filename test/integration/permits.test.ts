// Workflows with permits, over the engine, which refuses what DynamoDB refuses.
// @module-tag long
import { LeasedWorkflow, LeaseHeartbeat, LeaseTable } from "@leasehold/cdk";
import type { LeaseClient } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import type { LocalApp } from "@leasehold/local";
import { Duration, type Stack } from "aws-cdk-lib";
import { Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { afterAll, beforeAll, test } from "vitest";
import { until } from "../support/app.ts";
import { startStack } from "./fixtures/stack.ts";

let started: Awaited<ReturnType<typeof startStack>>;
let app: LocalApp;
let client: LeaseClient;
let keys = 0;

/** Workflows with 2 permits and with 1, of the key that each execution names, and a heartbeat for everybody. */
function build(stack: Stack): void {
  const table = new LeaseTable(stack, "Leases");
  const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
  const workOf = (id: string): Wait =>
    Wait.jsonata(stack, id, { time: WaitTime.seconds("{% $states.input.seconds %}") });
  const common = { table, heartbeat, leaseDuration: Duration.seconds(3) };
  new LeasedWorkflow(stack, "Two", { ...common, permits: 2, work: workOf("WorkOfTwo") });
  new LeasedWorkflow(stack, "One", {
    ...common,
    permits: 1,
    lockAtLeastFor: Duration.seconds(3),
    work: workOf("WorkOfOne"),
  });
}

beforeAll(async () => {
  started = await startStack(build, { owner: "client", clockSkewMs: 100 });
  ({ app, client } = started);
});
afterAll(() => started?.[Symbol.asyncDispose]());

function newKey(): string {
  keys += 1;
  return `key-${keys}`;
}

const start = (workflow: string, key: string, seconds: number): string =>
  app.startExecution(`${workflow}/StateMachine`, { key, seconds }).executionArn;

const working = (execution: string): Promise<void> =>
  until("the work to begin", () =>
    app.history(execution).entered.some(({ stateName }) => stateName.startsWith("WorkOf")),
  );

// Side by side, each with a key of its own: they mostly wait.
test.concurrent("as many work at once as there are permits, beside a client's, and keepers renew them", async ({
  expect,
}) => {
  const key = newKey();
  const semaphore = new Semaphore(client, key, { permits: 2 });
  const lease = await semaphore.acquire({ heartbeat: true });
  const one = start("Two", key, 6);
  await working(one);
  expect(await app.finished(start("Two", key, 0))).toMatchObject({
    status: "FAILED",
    error: "LeaseUnavailableError",
  });
  await lease.release();
  const two = start("Two", key, 6);
  await working(two);
  const before = await semaphore.inspect();
  expect(before.free).toBe(0);
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  const after = await semaphore.inspect();
  expect(after.held.map(({ token }) => token)).toEqual(before.held.map(({ token }) => token));
  for (const [index, { version }] of after.held.entries())
    expect(version).toBeGreaterThan(before.held[index]?.version ?? 0);
  for (const execution of [one, two])
    expect(await app.finished(execution)).toMatchObject({ status: "SUCCEEDED" });
  expect(await semaphore.inspect()).toMatchObject({ held: [], free: 2 });
});

test.concurrent("expired leases make room, of a reentrant owner and of several permits too, one after the other", async ({
  expect,
}) => {
  const key = newKey();
  const semaphore = new Semaphore(client, key, { permits: 5 });
  const dead = { leaseDurationMs: 500, heartbeat: false } as const;
  await semaphore.acquire({ ...dead, permits: 3, data: { note: "x,[]" } });
  await semaphore.acquire({ ...dead, owner: "dead", reentrant: true });
  await semaphore.acquire(dead);
  // Their expiry is up to a second later than it need be, and more after a slow first answer; the workflow allows for a second.
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const execution = start("Two", key, 2);
  await working(execution);
  const { held } = await semaphore.inspect();
  expect(held.map(({ owner }) => owner)).toContain(`workflow:${execution}`);
  expect(held.reduce((sum, { seat }) => sum + (seat?.permits ?? 0), 0)).toBeLessThanOrEqual(2);
  expect(await app.finished(execution)).toMatchObject({ status: "SUCCEEDED" });
});

test.concurrent("a permit stays taken in its cooldown, and is taken over after it", async ({ expect }) => {
  const key = newKey();
  const semaphore = new Semaphore(client, key, { permits: 1 });
  expect(await app.finished(start("One", key, 0))).toMatchObject({ status: "SUCCEEDED" });
  expect((await semaphore.inspect()).held).toMatchObject([{ inCooldown: true }]);
  expect(await semaphore.tryAcquire()).toBeUndefined();
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  expect(await app.finished(start("One", key, 0))).toMatchObject({ status: "SUCCEEDED" });
});

test.concurrent("a keeper keeps a client's permits until a time, with their payload, and lets all of them go", async ({
  expect,
}) => {
  const key = newKey();
  const semaphore = new Semaphore(client, key, { permits: 3 });
  const data = { text: 'a "b", [1]', list: [0.1, [2]] };
  const lease = await semaphore.acquire({
    permits: 2,
    leaseDurationMs: 8_000,
    owner: "me",
    reentrant: false,
    data,
  });
  const input = { lease: lease.toJSON(), until: Date.now() + 12_000 };
  const keeper = app.startExecution("Heartbeat/StateMachine", input).executionArn;
  await new Promise((resolve) => setTimeout(resolve, 9_000));
  expect((await semaphore.inspect()).held).toMatchObject([{ owner: "me", data, seat: { permits: 2 } }]);
  expect(await app.finished(keeper)).toMatchObject({ status: "SUCCEEDED" });
  expect((await semaphore.inspect()).free).toBe(3);
});
