// @module-tag long
import { metricNames } from "@leasehold/client/metrics";
import { startEngine } from "@leasehold/engine";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { startTestApp, type TestApp, until } from "../../support/app.ts";

const longAgo = Math.floor(Date.now() / 1000) - 3_600;
const resources = new AsyncDisposableStack();
let it: TestApp;

beforeAll(async () => {
  const { name } = inject("engine");
  // DynamoDB Local's sweep does not get round to every table where it has many: seen from nine on.
  const engine = name === "dynamodb-local" ? resources.use(await startEngine({ engine: name })) : undefined;
  it = resources.use(await startTestApp({}, engine));
});
afterAll(() => resources.disposeAsync());

/** Keys of the leases that were reported as expired. */
function reported(): string[] {
  return it.app.events.map(({ detail }) => (detail as { readonly key: string }).key);
}

test("a lease that ttl removes while it is held is reported, and what else becomes of leases is not", async ({
  skip,
}) => {
  const { name } = inject("engine");
  skip(
    name !== "dynamodb-local",
    `${name} collects items on demand, or within days: DynamoDB Local in seconds`,
  );
  const [deleted, released, closed, abandoned] = await Promise.all([
    it.leases.acquire("expired/deleted"),
    it.leases.acquire("expired/released"),
    it.leases.acquire("expired/closed", { lockAtLeastForMs: 20_000 }),
    it.leases.acquire("expired/abandoned", { data: "a secret", owner: "the dead holder" }),
  ]);
  await Promise.all([released.release(), closed.release(), it.deleteItem(deleted.key)]);
  for (const { key } of [released, closed, abandoned]) await it.collectFrom(key, longAgo);

  for (const { key } of [released, closed, abandoned]) {
    await until(`the removal of ${key}`, async () => (await it.leaseItem(key)) === undefined);
  }
  await until("the event", () => reported().includes(abandoned.key));
  await until("the metric", () => it.metric(metricNames.expired).length > 0);
  // Records of a shard come in order, but those of other items may come through other shards.
  await new Promise((resolve) => setTimeout(resolve, 1_000));

  const { key, owner, fencingToken, acquiredAt, expiresAt } = abandoned;
  const tableName = it.app.tableName("Leases/Resource");
  expect(it.app.events).toMatchObject([
    {
      source: "leasehold",
      detailType: "Lease Expired",
      eventBusName: "default",
      detail: { tableName, key, owner, fencingToken, acquiredAt, expiresAt },
    },
  ]);
  expect(JSON.stringify(it.app.events)).not.toMatch(new RegExp(`secret|${abandoned.token}`));
  expect(it.metric(metricNames.expired)).toEqual([1]);
});
