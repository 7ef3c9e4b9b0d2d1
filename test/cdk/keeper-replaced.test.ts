/** What takes the place of a keeper that was ended. */
import { beforeEach, describe, expect, it } from "vitest";
import { statusEvent } from "../../tools/local/src/state-machines/events.ts";
import { beatMs, forms, KeptWork, key, leaseDurationMs, stopped } from "../support/kept-work.ts";
import { startedBy } from "../support/step-functions.ts";

let kept: KeptWork;
/** The events of keepers that have ended, in the order in which they happened. */
let events: object[];

beforeEach(() => {
  kept = new KeptWork();
  events = [];
});

/** Keeps the events back, for a test that delivers them by itself. */
function holdBack(): void {
  kept.deliverKeepers = (event) => void events.push(event);
}

describe("a keeper that is aborted", () => {
  it.each(forms)("has another in its place at once, and nobody gets the %s", async (form) => {
    kept = new KeptWork(form);
    const { lease, work, keeper } = await kept.guarded();
    const other = kept.of(kept.clientOf("other"));
    await kept.beats(3);
    kept.steps.machines.stop(keeper);
    await kept.clock.advance(0);
    expect(kept.ends()).toMatchObject([{ status: "SUCCEEDED" }]);
    expect(kept.keepers()).toMatchObject([
      { status: "ABORTED" },
      { status: "RUNNING", input: { [startedBy]: kept.ends()[0]?.executionArn } },
    ]);
    for (let beat = 0; beat < 20; beat += 1) {
      expect(await kept.beats(1)).toBeGreaterThan(0);
      expect(await other.tryAcquire()).toBeUndefined();
    }
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.token()).toBe(lease.token);
    kept.steps.machines.stop(work);
    await kept.beats(2);
    expect(kept.token()).toBeUndefined();
    expect(kept.running()).toEqual([]);
  });

  it("has one other in its place, however often that is told", async () => {
    holdBack();
    const { keeper } = await kept.guarded();
    await kept.beats(1);
    kept.steps.machines.stop(keeper);
    const [event = {}] = events;
    kept.tellEnded(event);
    kept.tellEnded(event);
    await kept.clock.advance(0);
    kept.tellEnded(event);
    await kept.clock.advance(0);
    expect(kept.running()).toHaveLength(1);
    expect(kept.ends().map(({ status }) => status)).toEqual(["SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]);
  });

  it("in each of its states has another in its place, or has ended its work", async () => {
    const { keeper: model } = await kept.guarded();
    await kept.beats(6);
    const states = kept.entered(model).length;
    for (let died = 1; died <= states; died += 1) {
      kept = new KeptWork();
      const { lease, work, keeper } = await kept.guarded();
      for (let tries = 0; kept.entered(keeper).length < died && tries < 100; tries += 1) {
        await kept.clock.advance(500);
      }
      kept.steps.machines.stop(keeper);
      expect(await kept.beats(3)).toBeGreaterThan(0);
      expect(kept.status(work)).toBe("RUNNING");
      expect(kept.token()).toBe(lease.token);
      expect(kept.running()).toHaveLength(1);
    }
  });

  it("again and again is replaced 20 times, and then the work is stopped and the lock let go", async () => {
    const { work } = await kept.guarded();
    let aborted = 0;
    while (kept.status(work) === "RUNNING" && aborted < 50) {
      for (const keeper of kept.running()) kept.steps.machines.stop(keeper);
      aborted += 1;
      await kept.clock.advance(500);
    }
    expect(aborted).toBe(21);
    expect(kept.describe(work)).toMatchObject(stopped("no keeper of its lease goes on"));
    await kept.beats(2);
    expect(kept.token()).toBeUndefined();
    expect(kept.running()).toEqual([]);
  });

  it.each(["ABORTED", "TIMED_OUT"])(
    "has its work stopped where another holder has got the lock before that was told: %s",
    async (status) => {
      holdBack();
      const { work, keeper } = await kept.guarded();
      kept.steps.machines.stop(keeper);
      await kept.clock.advance(leaseDurationMs + 5_000);
      const thief = await kept.client.acquire(key);
      const [event] = events as { readonly detail: object }[];
      kept.tellEnded({ ...event, detail: { ...event?.detail, status } });
      await kept.clock.advance(0);
      expect(kept.describe(work)).toMatchObject(stopped(/its keeper ended before its work did/));
      expect(kept.token()).toBe(thief.token);
      expect(kept.running()).toEqual([]);
    },
  );

  it("has another in its place that takes up an expired lease which nobody has taken", async () => {
    holdBack();
    const { lease, work, keeper } = await kept.guarded();
    kept.steps.machines.stop(keeper);
    await kept.clock.advance(leaseDurationMs + 60_000);
    kept.tellEnded(events[0] ?? {});
    await kept.clock.advance(0);
    expect(kept.expiresAt()).toBeGreaterThan(kept.clock.now());
    expect(kept.token()).toBe(lease.token);
    expect(kept.status(work)).toBe("RUNNING");
  });

  it.each(["ABORTED", "FAILED"])(
    "has its work stopped where the lock is lost while no new keeper can be started: %s",
    async (status) => {
      holdBack();
      const { work, keeper } = await kept.guarded();
      kept.steps.fail("sfn:startExecution.waitForTaskToken", 1_000, "Sfn.ExecutionLimitExceededException");
      kept.steps.machines.stop(keeper);
      kept.tellEnded({ detail: { ...statusEvent(kept.describe(keeper)).detail, status } });
      await kept.clock.advance(4_000);
      expect(kept.status(work)).toBe("RUNNING");
      await kept.breakLease();
      const thief = await kept.client.acquire(key, { heartbeat: true });
      await kept.clock.advance(16_000);
      expect(kept.describe(work)).toMatchObject(stopped());
      expect(kept.token()).toBe(thief.token);
      await thief.release();
    },
  );

  it("has its work stopped after minutes in which no new keeper could be started", async () => {
    const { work, keeper } = await kept.guarded();
    kept.steps.fail("sfn:startExecution.waitForTaskToken", 1_000, "Sfn.ExecutionLimitExceededException");
    kept.steps.machines.stop(keeper);
    await kept.clock.advance(150_000);
    expect(kept.status(work)).toBe("RUNNING");
    await kept.clock.advance(60_000);
    expect(kept.describe(work)).toMatchObject({ cause: "no keeper of its lease goes on" });
  });

  it.each(["dynamodb:getItem", "sfn:startExecution.waitForTaskToken"])(
    "has another in its place in time after a request that hangs: %s",
    async (action) => {
      const { lease, work, keeper } = await kept.guarded();
      await kept.clock.advance(beatMs - 1);
      kept.steps.hang(action, 1);
      kept.steps.machines.stop(keeper);
      expect(await kept.beats(5)).toBeGreaterThan(0);
      expect([kept.token(), kept.running().length, kept.status(work)]).toEqual([lease.token, 1, "RUNNING"]);
    },
  );

  it("has nothing in its place where the work has let its lease go, or has ended", async () => {
    holdBack();
    const { lease, work, keeper } = await kept.guarded();
    kept.steps.machines.stop(keeper);
    await lease.release();
    kept.tellEnded(events[0] ?? {});
    await kept.clock.advance(0);
    expect(kept.running()).toEqual([]);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.ends()).toMatchObject([{ status: "SUCCEEDED" }]);
  });

  it("has another in its place that lets go of what work held which has ended", async () => {
    holdBack();
    kept.deliver = () => {};
    const { work, keeper } = await kept.guarded();
    kept.steps.machines.stop(keeper);
    kept.steps.machines.stop(work);
    kept.tellEnded(events[0] ?? {});
    await kept.clock.advance(60_000);
    expect(kept.token()).toBeUndefined();
    expect(kept.running()).toEqual([]);
  });

  it("without an execution to guard is not replaced: nothing proves that its lease is still wanted", async () => {
    const lease = await kept.client.acquire(key);
    const keeper = kept.startKeeper({ lease: lease.toJSON(), until: kept.clock.now() + 60_000 });
    await kept.beats(1);
    kept.steps.machines.stop(keeper);
    await kept.beats(1);
    expect(kept.running()).toEqual([]);
    expect(kept.ends()).toMatchObject([{ status: "SUCCEEDED" }]);
  });
});

describe("a keeper that fails", () => {
  it("with an error of its own is not replaced, and nothing is read", async () => {
    holdBack();
    const { work } = await kept.guarded();
    await kept.breakLease();
    await kept.client.acquire(key);
    await kept.beats(2);
    expect(kept.describe(work)).toMatchObject({ error: "LeaseLostError" });
    expect(events).toHaveLength(1);
    kept.steps.calls.length = 0;
    kept.tellEnded(events[0] ?? {});
    await kept.clock.advance(0);
    expect(kept.steps.calls).toEqual([]);
  });

  it("with an error of Step Functions is replaced while the lease is its work's", async () => {
    const { lease, work, keeper } = await kept.guarded();
    holdBack();
    kept.steps.machines.stop(keeper);
    kept.tellEnded({
      detail: { ...statusEvent(kept.describe(keeper)).detail, status: "FAILED", error: "States.Runtime" },
    });
    await kept.clock.advance(0);
    expect(kept.running()).toHaveLength(1);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.token()).toBe(lease.token);
  });

  it("and whose input proves nothing stops nothing, whatever its event says", async () => {
    holdBack();
    const victim = kept.startWork();
    const lease = await kept.client.acquire(key, { owner: "the caller" });
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: victim });
    await kept.clock.advance(0);
    const { detail } = statusEvent(kept.describe(keeper));
    for (const error of [detail.error, "States.Runtime", null])
      kept.tellEnded({ detail: { ...detail, error } });
    await kept.clock.advance(60_000);
    expect(kept.status(victim)).toBe("RUNNING");
    expect(kept.running()).toEqual([]);
  });

  it.each([null, "7", "[]", "{}", '{"lease":7}', '{"lease":{"key":"import"},"guarded":"x"}'])(
    "with the input %s has nothing in its place",
    async (input) => {
      const stateMachineArn = kept.keeperMachine;
      const detail = { executionArn: "arn", stateMachineArn, status: "ABORTED", input, error: null };
      const arn = kept.tellEnded({ detail });
      await kept.clock.advance(0);
      expect(kept.status(arn)).toBe("SUCCEEDED");
      expect(kept.steps.calls).toEqual([]);
    },
  );
});
