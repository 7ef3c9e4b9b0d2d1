import { once } from "node:events";
import type { LeaseClient } from "@leasehold/client";
import { afterAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { FairLock } from "../../packages/client/src/entries/fair.ts";
import { patienceMs } from "../support/patience.ts";
import { startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { LeasedInvocationsConfig } from "./fixtures/leased-invocations.ts";

const engine = inject("engine");
const table = await makeTable(engine);
const watcher: LeaseClient = table.client({ owner: "somebody else", leaseDurationMs: 600_000 });
afterAll(() => table.close());

const longMs = 300_000;
/** Middy ends such an invocation while its handler runs. */
const shortMs = 2_000;

const waiting = async (key: string): Promise<number> =>
  (await new FairLock(watcher, key).inspect()).waiting.length;

/** Starts a process with these invocations, and ends it by SIGTERM once it waits and has said what is expected. */
async function shutDown(
  invocations: LeasedInvocationsConfig["invocations"],
  waitingKey: string,
  expected: readonly string[],
): Promise<number> {
  const config = { clientConfig: engine.clientConfig, tableName: table.tableName, invocations };
  const script = new URL("fixtures/leased-invocations.ts", import.meta.url);
  const child = startScript(script, config, { ipc: true });
  onTestFinished(() => void child.kill("SIGKILL"));
  const messages: string[] = [];
  child.on("message", (message: string) => messages.push(message));
  await vi.waitFor(
    async () => {
      expect(messages).toEqual(expected);
      expect(await waiting(waitingKey)).toBe(1);
    },
    { timeout: patienceMs, interval: 50 },
  );
  const sentAt = performance.now();
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([null, "SIGTERM"]);
  return performance.now() - sentAt;
}

describe("SIGTERM to a process whose middleware has made its own client", () => {
  test("takes the ticket of a wait out of its queue", async () => {
    const key = table.newKey();
    const lease = await watcher.acquire(key);
    await shutDown({ [key]: longMs }, key, []);
    expect(await waiting(key)).toBe(0);
    expect((await watcher.inspect(key))?.owner).toBe("somebody else");
    await lease.release();
  });

  test("does so beside a handler that still runs, which keeps its lease", async () => {
    const [key, busy] = [table.newKey(), table.newKey()];
    await watcher.acquire(key);
    await shutDown({ [busy]: longMs, [key]: longMs }, key, [`running ${busy}`]);
    expect(await waiting(key)).toBe(0);
    expect(await watcher.inspect(busy)).toMatchObject({ owner: `shutdown/${busy}`, inCooldown: false });
  });

  test("does so beside a handler that has outlived its invocation, which keeps its lease", async () => {
    const [key, outlived] = [table.newKey(), table.newKey()];
    await watcher.acquire(key);
    await shutDown({ [outlived]: shortMs, [key]: longMs }, key, [
      `running ${outlived}`,
      `TimeoutError ${outlived}`,
    ]);
    expect(await waiting(key)).toBe(0);
    expect(await watcher.inspect(outlived)).toMatchObject({
      owner: `shutdown/${outlived}`,
      inCooldown: false,
    });
  });
});
