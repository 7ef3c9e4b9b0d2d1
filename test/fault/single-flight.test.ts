// @module-tag long
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterAll, expect, inject, onTestFinished, test, vi } from "vitest";
import { SingleFlight } from "../../packages/client/src/entries/single-flight.ts";
import { messageFrom, startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { FlightConfig, FlightReport } from "./fixtures/flight-holder.ts";

const engine = inject("engine");
const table = await makeTable(engine);
const leaseDurationMs = 4_000;

afterAll(() => table.close());

async function startHolder(key: string, computeMs: number): Promise<ChildProcess> {
  const { clientConfig } = engine;
  const config: FlightConfig = { clientConfig, tableName: table.tableName, key, leaseDurationMs, computeMs };
  const holder = startScript(new URL("./fixtures/flight-holder.ts", import.meta.url), config, { ipc: true });
  onTestFinished(() => {
    holder.kill("SIGKILL");
  });
  expect(await messageFrom<FlightReport>(holder)).toEqual({ type: "computing" });
  return holder;
}

function flights(): SingleFlight {
  const client = table.client({ leaseDurationMs, clockSkewMs: 200 });
  return new SingleFlight(client, { freshForMs: 60_000 });
}

/** Four processes' worth of callers, each of which would compute. */
async function callAll(
  key: string,
): Promise<{ readonly values: readonly string[]; readonly computed: number }> {
  const compute = vi.fn(async () => "newer");
  const values = await Promise.all([1, 2, 3, 4].map(() => flights().getOrCompute(key, { compute })));
  return { values, computed: compute.mock.calls.length };
}

test("callers wait for a live process's result, for longer than its lease is", async () => {
  const key = table.newKey();
  const holder = await startHolder(key, 6_000);
  const done = messageFrom<FlightReport>(holder);
  expect(await callAll(key)).toEqual({ values: ["older", "older", "older", "older"], computed: 0 });
  expect(await done).toEqual({ type: "done", value: "older", notStored: [] });
});

test("a killed process's computation is made good by exactly one other", async () => {
  const key = table.newKey();
  const holder = await startHolder(key, 60_000);
  holder.kill("SIGKILL");
  await once(holder, "exit");
  expect(await callAll(key)).toEqual({ values: ["newer", "newer", "newer", "newer"], computed: 1 });
});

test("a process that computes while its key is invalidated stores nothing; one of those that call after it computes", async () => {
  const key = table.newKey();
  const holder = await startHolder(key, 4_000);
  await flights().invalidate(key);
  const done = messageFrom<FlightReport>(holder);
  expect(await callAll(key)).toEqual({ values: ["newer", "newer", "newer", "newer"], computed: 1 });
  expect(await done).toEqual({ type: "done", value: "older", notStored: ["refused"] });
  expect(await callAll(key)).toEqual({ values: ["newer", "newer", "newer", "newer"], computed: 0 });
});

test("a stopped process that goes on after its lease was taken stores nothing", async () => {
  const key = table.newKey();
  const holder = await startHolder(key, 1_500);
  holder.kill("SIGSTOP");
  expect(await callAll(key)).toEqual({ values: ["newer", "newer", "newer", "newer"], computed: 1 });
  const done = messageFrom<FlightReport>(holder);
  holder.kill("SIGCONT");
  expect(await done).toEqual({ type: "done", value: "older", notStored: ["leaseLost"] });
  expect(await callAll(key)).toEqual({ values: ["newer", "newer", "newer", "newer"], computed: 0 });
});
