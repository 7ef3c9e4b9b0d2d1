// A mistake in a program is not taken for a failure of the service: it ends the command with 70.

import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { tooLargeError } from "../../packages/cli/src/view/table-snapshot.ts";
import { leasehold } from "../support/command-line.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const mistake = new TypeError("a mistake");
const failure = new LeaseServiceError("LEASE_SERVICE_FAILED", "busy");
const slot = "2026-11-22";
let store: ScriptedStore;
let clock: ManualClock;

beforeEach(async () => {
  store = new ScriptedStore();
  clock = new ManualClock();
  const client = new LeaseClient({ store, clock, owner: "bob" });
  await client.acquire("held");
  const done = await client.acquire("done", { slot });
  await done.complete();
});

const run = (...args: string[]) =>
  leasehold(["run", ...args, "--mixed-ok", "--", "true"], { store, clock, env: { PATH: process.env.PATH } });
/** Every query goes wrong from now on. */
const spoilReads = (error: Error): void => {
  const spoilt = () => Promise.reject(error);
  Object.assign(store, { query: spoilt });
};

describe("a detail of a refusal that cannot be read", () => {
  it.each([
    ["held", ["held"], 75, "held is held by bob"],
    ["done", ["done", "--slot", slot], 80, "is done; nothing to do"],
  ])("is left out where the service fails: %s", async (_, args, code, text) => {
    spoilReads(failure);
    const called = await run(...args);
    expect([called.code, called.stderr]).toEqual([code, expect.stringContaining(text)]);
  });

  it.each([
    ["held", ["held"]],
    ["held, while it waits", ["held", "--wait", "1s"]],
    ["done", ["done", "--slot", slot]],
  ])("ends the command where it is a mistake: %s", async (_, args) => {
    spoilReads(mistake);
    const called = run(...args);
    await clock.advance(2_000);
    const { code, stderr } = await called;
    expect([code, stderr]).toEqual([70, expect.stringContaining("leasehold: a mistake")]);
  });
});

it("the price of a table hides no mistake", async () => {
  const cost = { items: 1, bytes: 1, units: 1, dollars: 0 };
  await expect(tooLargeError(cost, () => Promise.reject(mistake))).rejects.toBe(mistake);
});
