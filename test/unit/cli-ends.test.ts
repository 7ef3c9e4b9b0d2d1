/** How commands that run a child end: by a signal, by --max, and what the table says then. */
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Child } from "../../packages/cli/src/work/child.ts";
import { leasehold } from "../support/command-line.ts";

const env = { PATH: process.env.PATH };
const slot = "2025-12-31T08:00:00.000Z";
let store: MemoryLeaseStore;
let clock: ManualClock;
let client: LeaseClient;

beforeEach(() => {
  [store, clock] = [new MemoryLeaseStore(), new ManualClock()];
  client = new LeaseClient({ store, clock, owner: "another" });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A child that ends with this code as soon as it gets a signal. */
function childEndingWith(code: number) {
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  const got: string[] = [];
  const take = (name: string): void => {
    got.push(name);
    resolve(code);
  };
  const child = { ended, kill: take, passOn: take, closePipe: () => undefined, hasLeftovers: () => false };
  const start = vi.spyOn(Child, "start").mockResolvedValue(child as unknown as Child);
  return { got, started: () => vi.waitFor(() => expect(start).toHaveBeenCalled(), { interval: 1 }) };
}

describe("leasehold tasks work --max", () => {
  it("counts a child as failed that was stopped, though it ends with 0", async () => {
    const tasks = new TaskSet(client, "orders", { maxAttempts: 1 });
    await tasks.add([{ id: "1" }]);
    const { got, started } = childEndingWith(0);
    const called = leasehold(["tasks", "work", "orders", "--max", "5s", "--", "true"], { store, clock, env });
    await started();
    await clock.advance(5_000);
    expect((await called).code).toBe(1);
    expect(got[0]).toBe("SIGTERM");
    expect(await tasks.get("1")).toMatchObject({ state: "failed" });
  });
});

describe("leasehold jobs retry", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("that %s ends exits %i, whatever code its child ends with", async (name, code) => {
    const { got, started } = childEndingWith(3);
    let send: (name: NodeJS.Signals) => void = () => undefined;
    const onRedirect = (listener: typeof send): void => {
      send = listener;
    };
    const args = ["jobs", "retry", "report", slot, "--yes", "--", "true"];
    const called = leasehold(args, { store, clock, env, onRedirect });
    await started();
    send(name);
    expect((await called).code).toBe(code);
    expect(got).toEqual([name]);
    expect(await new JobRuns(client, "report").get(slot)).toMatchObject({ state: "failed" });
  });

  it("passes on its child's own code where nothing has ended it", async () => {
    const { started } = childEndingWith(3);
    const called = leasehold(["jobs", "retry", "report", slot, "--yes", "--max", "1s", "--", "true"], {
      ...{ store, clock, env },
    });
    await started();
    await clock.advance(1_000);
    expect((await called).code).toBe(3);
  });
});
