import { metricNames } from "@leasehold/client/metrics";
import { afterAll, expect, test } from "vitest";
import { closeUnpaidOrdersKey as key } from "../../../functions/close-unpaid-orders/job.ts";
import { closeAfterVariable } from "../../../functions/close-unpaid-orders/schema.ts";
import { startTestApp, until } from "../../support/app.ts";
import { Shop } from "../../support/shop.ts";

const schedule = "UnpaidOrders/Job/Schedule";
const job = "close-unpaid-orders";
const hourMs = 3_600_000;
const it = await startTestApp({ environment: { [closeAfterVariable]: "1" } });
afterAll(() => it[Symbol.asyncDispose]());

/** How many of the job's invocations have ended in each way, since the start. */
function counts(): { readonly succeeded: number; readonly skipped: number; readonly failed: number } {
  const count = (name: string): number => it.metric(name, job).reduce((sum, value) => sum + value, 0);
  const { jobSucceeded, jobSkipped, jobFailed } = metricNames;
  return { succeeded: count(jobSucceeded), skipped: count(jobSkipped), failed: count(jobFailed) };
}

test("a schedule that fires twice for the same time runs its job once, also at once and also when it comes late", async () => {
  const shop = await Shop.open(it, 3, 2 * hourMs);
  const young = await Shop.open(it, 1, hourMs / 2);
  const scheduledTime = new Date(Math.floor(Date.now() / 1000) * 1000);
  await Promise.all([it.app.fire(schedule, { scheduledTime }), it.app.fire(schedule, { scheduledTime })]);
  await until("both", () => counts().succeeded + counts().skipped === 2);
  expect(counts()).toEqual({ succeeded: 1, skipped: 1, failed: 0 });

  await it.app.fire(schedule, { scheduledTime });
  await until("the late one", () => counts().skipped === 2);
  await it.app.fire(schedule, { scheduledTime: new Date(scheduledTime.getTime() - 60_000) });
  await until("the outdated one", () => counts().skipped === 3);
  expect(counts()).toEqual({ succeeded: 1, skipped: 3, failed: 0 });
  expect(await shop.state()).toEqual({ closings: [1, 1, 1], restocked: 3 });
  expect(await young.state()).toEqual({ closings: [0], restocked: 0 });
  expect(await it.leaseItem(key)).toMatchObject({ doneSlot: scheduledTime.toISOString() });
  const asked = { action: "runs", state: "succeeded" };
  expect((await it.app.invoke("UnpaidOrders/Report", asked)).payload).toMatchObject({
    counts: { succeeded: 1, failed: 0 },
    runs: [{ slot: scheduledTime.toISOString(), attempt: 1, progress: { closed: 3, parked: 0 } }],
  });
});

test("the next scheduled time runs again", async () => {
  const shop = await Shop.open(it, 2, 2 * hourMs);
  const before = counts();
  await it.app.fire(schedule, { scheduledTime: new Date(Date.now() + 30_000) });
  await until("the run", () => counts().succeeded === before.succeeded + 1);
  expect(await shop.state()).toEqual({ closings: [1, 1], restocked: 2 });
});

test("what the job's invocations measure names the table and the job, and no more", async () => {
  const measured = it.events.flatMap((event) => (event.type === "metric" ? [event.metric] : []));
  expect(measured.length).toBeGreaterThan(0);
  const Table = it.app.tableName("Leases/Resource");
  for (const { namespace, dimensions } of measured) {
    expect(namespace).toBe("Leasehold");
    expect(dimensions).toEqual(dimensions.Job === undefined ? { Table } : { Table, Job: job });
  }
  const { jobSucceeded, jobSkipped, acquired, released } = metricNames;
  const named = new Set(measured.map(({ name }) => name));
  for (const name of [jobSucceeded, jobSkipped, acquired, released]) expect(named).toContain(name);
});
