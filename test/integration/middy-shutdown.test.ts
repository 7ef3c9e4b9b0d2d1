import { once } from "node:events";
import type { LeaseClient } from "@leasehold/client";
import { afterAll, expect, inject, onTestFinished, test, vi } from "vitest";
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
): Promise<void> {
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
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([null, "SIGTERM"]);
}

test.each([
  ["", undefined],
  [", beside a handler that still runs, which keeps its lease", longMs],
  [", beside a handler that has outlived its invocation, which keeps its lease", shortMs],
])(
  "SIGTERM to a process whose middleware has made its own client takes the ticket of a wait out of its queue%s",
  async (_, besideMs) => {
    const [key, beside] = [table.newKey(), table.newKey()];
    const lease = await watcher.acquire(key);
    const invocations = besideMs === undefined ? {} : { [beside]: besideMs };
    const running = besideMs === undefined ? [] : [`running ${beside}`];
    const outlived = besideMs === shortMs ? [`TimeoutError ${beside}`] : [];
    await shutDown({ ...invocations, [key]: longMs }, key, [...running, ...outlived]);
    expect(await waiting(key)).toBe(0);
    expect((await watcher.inspect(key))?.owner).toBe("somebody else");
    if (besideMs !== undefined)
      expect(await watcher.inspect(beside)).toMatchObject({ owner: `shutdown/${beside}`, inCooldown: false });
    await lease.release();
  },
);
