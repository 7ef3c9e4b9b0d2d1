// @module-tag long
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import type { LeaseEvent } from "@leasehold/client";
import { afterAll, expect, inject, type TestContext, test } from "vitest";
import { messageFrom, startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { HolderConfig, HolderReady, HolderReport } from "./fixtures/holder.ts";

const engine = inject("engine");
const table = await makeTable(engine);
const items = await makeTable(engine);
const clockSkewMs = 200;
/** The service tells its time to the second: an expiry has to be so long ago for one answer to show it. */
const toldAfterMs = clockSkewMs + 1_000;

afterAll(() => {
  table.close();
  items.close();
});

async function startHolder(
  { onTestFinished }: TestContext,
  config: Pick<HolderConfig, "key" | "leaseDurationMs" | "heartbeat">,
): Promise<{ readonly holder: ChildProcess; readonly ready: HolderReady }> {
  const { clientConfig } = engine;
  const { tableName } = table;
  const holder = startScript(
    new URL("./fixtures/holder.ts", import.meta.url),
    { ...config, clientConfig, tableName, itemsTable: items.tableName },
    { ipc: true },
  );
  onTestFinished(() => {
    holder.kill("SIGKILL");
  });
  return { holder, ready: await messageFrom<HolderReady>(holder) };
}

async function sleepUntil(epochMs: number): Promise<void> {
  // A timer may fire a little early.
  while (Date.now() <= epochMs) await sleep(epochMs - Date.now() + 1);
}

// Side by side, each with a key of its own: they mostly wait.
test.concurrent("the lock of a killed holder is taken over once its lease has ended, at the first call", async (context) => {
  const key = table.newKey();
  const { holder, ready } = await startHolder(context, { key, leaseDurationMs: 6_000, heartbeat: true });
  holder.kill("SIGKILL");
  await once(holder, "exit");
  const record = await table.client().inspect(key);
  expect(record?.owner).toBe("the frozen holder");
  expect(await table.client().tryAcquire(key)).toBeUndefined();

  await sleepUntil((record?.expiresAt ?? Number.NaN) + toldAfterMs);
  const events: LeaseEvent[] = [];
  const other = table.client({ clockSkewMs, onEvent: (event) => events.push(event) });
  const lease = await other.acquire(key);
  expect(lease.fencingToken).toBe(ready.fencingToken + 1);
  expect(events[0]).toMatchObject({ type: "takeover", reason: "serviceClock" });
});

test.concurrent.for([
  ["without a heartbeat", false],
  ["with a heartbeat", true],
] as const)(
  "a holder that was frozen beyond its lease, %s, knows on waking that it holds nothing, and changes nothing",
  async ([, heartbeat], context) => {
    const key = table.newKey();
    const { holder } = await startHolder(context, { key, leaseDurationMs: 1_500, heartbeat });
    holder.kill("SIGSTOP");
    const { expiresAt = Number.NaN } = (await table.client().inspect(key)) ?? {};
    await sleepUntil(expiresAt + toldAfterMs);
    const next = await table.client({ clockSkewMs }).acquire(key, { owner: "the next holder" });
    const Item = {
      pk: { S: key },
      sk: { S: "item" },
      text: { S: "the next holder's" },
      ...next.fence().attributes,
    };
    await items.dynamodb.send(new PutItemCommand({ TableName: items.tableName, Item }));
    const before = await table.client().inspect(key);

    // The question is there before the holder wakes: its answer is the first thing that it does.
    holder.send("what do you see?");
    holder.kill("SIGCONT");
    expect(await messageFrom<HolderReport>(holder)).toEqual({
      held: false,
      reason: "expired",
      renewal: "LeaseLostError",
      fencedWrite: "ConditionalCheckFailedException",
      transaction: "TransactionCanceledException",
      release: false,
    });
    expect(await table.client().inspect(key)).toEqual(before);
    const found = await items.dynamodb.send(
      new GetItemCommand({
        TableName: items.tableName,
        Key: { pk: Item.pk, sk: Item.sk },
        ConsistentRead: true,
      }),
    );
    expect(found.Item).toEqual(Item);
    expect(await next.release()).toBe(true);
  },
);

test.concurrent("a process that holds a lease with a heartbeat and has nothing else to do ends by itself", async ({
  onTestFinished,
}) => {
  const key = table.newKey();
  const { clientConfig } = engine;
  const holder = startScript(
    new URL("./fixtures/idle-holder.ts", import.meta.url),
    { clientConfig, tableName: table.tableName, key },
    { ipc: false },
  );
  onTestFinished(() => {
    holder.kill("SIGKILL");
  });
  expect(await once(holder, "exit")).toEqual([0, null]);
  expect(await table.client().inspect(key)).toMatchObject({ owner: "the idle holder" });
});
