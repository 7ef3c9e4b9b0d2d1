import { once } from "node:events";
import { FairLock } from "@leasehold/client/fair";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { messageFrom, startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { ClosingWaiterConfig, ClosingWaiterMessage } from "./fixtures/closing-waiter.ts";

const engine = inject("engine");
const table = await makeTable(engine);
afterAll(() => table.close());

test("a process that gives its wait up, closes its client and ends at once leaves no ticket and no lease behind", async () => {
  const [heldKey, awaitedKey] = [table.newKey(), table.newKey()];
  const client = table.client();
  await client.acquire(awaitedKey, { leaseDurationMs: 120_000 });
  const queue = new FairLock(client, awaitedKey);
  const { clientConfig } = engine;
  const config: ClosingWaiterConfig = { clientConfig, tableName: table.tableName, heldKey, awaitedKey };
  const child = startScript(new URL("./fixtures/closing-waiter.ts", import.meta.url), config, { ipc: true });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const exited = once(child, "exit");
  expect(await messageFrom<ClosingWaiterMessage>(child)).toEqual({ place: 1 });
  expect((await queue.inspect()).waiting).toHaveLength(1);

  child.send("stop");
  expect(await messageFrom<ClosingWaiterMessage>(child)).toEqual({ waitEndedWith: "asked to stop" });
  expect(await exited).toEqual([0, null]);
  expect((await queue.inspect()).waiting).toEqual([]);
  expect(await client.inspect(heldKey)).toBeUndefined();
});

test("a process that holds a lease with a heartbeat and has nothing else to do ends by itself", async () => {
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
