// @module-tag long
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fair } from "@leasehold/client/fair";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { messageFrom, startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { FairWaiterConfig, FairWaiterMessage } from "./fixtures/fair-waiter.ts";

const engine = inject("engine");
const table = await makeTable(engine);
afterAll(() => table.close());

/** Whoever has got the lock, in that order, with the token. */
type Served = { readonly owner: string; readonly fencingToken: number }[];

/** A process that stands in the queue when this resolves. */
async function startWaiter(key: string, owner: string, served: Served): Promise<ChildProcess> {
  const { clientConfig } = engine;
  const config: FairWaiterConfig = { clientConfig, tableName: table.tableName, key, owner, holdMs: 100 };
  const child = startScript(new URL("./fixtures/fair-waiter.ts", import.meta.url), config, { ipc: true });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  child.on("message", (message: FairWaiterMessage) => {
    if ("fencingToken" in message) served.push({ owner, fencingToken: message.fencingToken });
  });
  expect(await messageFrom<FairWaiterMessage>(child)).toHaveProperty("place");
  return child;
}

test("of those who wait fairly in processes of their own one is killed and one is frozen: they are passed over, the others keep their order, and the one that wakes comes last", async () => {
  const key = table.newKey();
  const first = await table.client().acquire(key, { order: fair(), heartbeat: true });
  const served: Served = [];
  const waiters: Record<string, ChildProcess> = {};
  for (const owner of ["a", "killed", "b", "frozen", "c"]) {
    waiters[owner] = await startWaiter(key, owner, served);
  }
  const ends = ["a", "b", "c"].map((owner) => once(waiters[owner] as ChildProcess, "exit"));
  waiters.killed?.kill("SIGKILL");
  waiters.frozen?.kill("SIGSTOP");
  await first.release();
  await Promise.all(ends);
  expect(served.map(({ owner }) => owner)).toEqual(["a", "b", "c"]);

  // Its place is gone, and nobody holds the lock: it acquires anew.
  const awake = once(waiters.frozen as ChildProcess, "exit");
  waiters.frozen?.kill("SIGCONT");
  expect(await awake).toEqual([0, null]);
  expect(served.map(({ owner }) => owner)).toEqual(["a", "b", "c", "frozen"]);
  const tokens = served.map(({ fencingToken }) => fencingToken);
  expect(tokens).toEqual([1, 2, 3, 4].map((after) => first.fencingToken + after));
  expect(await table.client().inspect(key)).toBeUndefined();
});
