import { beforeEach, describe, expect, it } from "vitest";
import { beatMs, failed, forms, KeptWork, key, lookMs, stopped } from "../support/kept-work.ts";

let kept: KeptWork;
/** What was told of the work's end, in the order in which it happened. */
let events: object[];

beforeEach(() => {
  kept = new KeptWork();
  events = [];
  kept.deliver = (event) => void events.push(event);
});

/** Delivers an event and lets its machine run to the end. */
async function tell(event: object | undefined): Promise<string> {
  const arn = kept.tellEnded(event ?? {});
  await kept.clock.advance(0);
  return arn;
}

describe.each(forms)("the end of an execution that holds a %s", (form) => {
  beforeEach(() => {
    kept = new KeptWork(form);
  });

  it("lets it go at once, and its keeper ends with its next renewal", async () => {
    const { lease, work, keeper } = await kept.guarded();
    await kept.clock.advance(beatMs);
    kept.steps.calls.length = 0;
    kept.steps.machines.stop(work);
    await kept.clock.advance(0);
    const item = form === "lock" ? kept.steps.lease(key) : kept.seats();
    expect(item).toMatchObject({ releasedToken: lease.token });
    expect(kept.token()).toBeUndefined();
    expect(kept.steps.calls).toEqual(["dynamodb:getItem", "sfn:describeExecution", "dynamodb:updateItem"]);
    await kept.clock.advance(beatMs);
    expect(kept.status(keeper)).toBe("SUCCEEDED");
  });

  it("finds the key in the execution's own input where none is given", async () => {
    kept.deliver = () => {};
    const { work } = await kept.guarded();
    kept.steps.machines.stop(work);
    const input = JSON.stringify({ key, orders: "x".repeat(200 * 1024) });
    const arn = await tell({ detail: { executionArn: work, status: "ABORTED", input } });
    expect(kept.token()).toBeUndefined();
    await kept.clock.advance(5_000);
    expect(kept.status(arn)).toBe("SUCCEEDED");
  });
});

describe("the end of an execution that holds a lock", () => {
  it.each([[{ key }], [{ key, detail: 7 }], [{ key, detail: { executionArn: 7 } }], [{}]])(
    "is no event that names no execution: %j",
    async (event) => {
      const arn = await tell(event);
      expect(kept.describe(arn)).toMatchObject({ status: "SUCCEEDED" });
      expect(kept.steps.calls).toEqual([]);
    },
  );

  it.each([
    ["without an input, which was too large for it", {}],
    ["whose input is null", { input: null }],
    ["whose input has no key", { input: "{}" }],
    ["whose input has a key that is a number", { input: '{"key":7}' }],
    ["whose input is a list", { input: "[1]" }],
    ["whose input is a text", { input: '"import"' }],
  ])("is left to the keeper after an event %s", async (_, detail) => {
    const { work, keeper } = await kept.guarded();
    kept.steps.machines.stop(work);
    kept.steps.calls.length = 0;
    const arn = await tell({ detail: { executionArn: work, status: "ABORTED", ...detail } });
    expect(kept.status(arn)).toBe("SUCCEEDED");
    expect(kept.steps.calls).toEqual([]);
    await kept.clock.advance(lookMs);
    expect(kept.token()).toBeUndefined();
    await kept.clock.advance(beatMs);
    expect(kept.status(keeper)).toBe("SUCCEEDED");
  });

  it("told late, leaves the lease of the next holder alone", async () => {
    const { work } = await kept.guarded();
    kept.steps.machines.stop(work);
    await kept.clock.advance(lookMs);
    const next = await kept.guarded();
    const late = await tell(events[0]);
    expect(kept.status(late)).toBe("SUCCEEDED");
    expect(kept.token()).toBe(next.lease.token);
    await kept.beats(10);
    expect(kept.status(next.work)).toBe("RUNNING");
  });

  it("told of an execution that is at work again, leaves its lease alone", async () => {
    const { work, lease } = await kept.guarded();
    await tell({ key, detail: { executionArn: work, status: "ABORTED" } });
    expect(kept.token()).toBe(lease.token);
  });

  it("leaves a lock closed that its holder has closed", async () => {
    const { lease, work } = await kept.working({ lockAtLeastForMs: 9_000 });
    await lease.release();
    expect(String(kept.token())).toMatch(/^closed:/);
    kept.steps.machines.stop(work);
    const before = kept.steps.lease(key);
    await tell(events[0]);
    expect(kept.steps.lease(key)).toEqual(before);
  });

  it("of one that never held a lock costs one read", async () => {
    await kept.client.acquire(key);
    const work = kept.startWork();
    kept.steps.machines.stop(work);
    kept.steps.calls.length = 0;
    const arn = await tell(events[0]);
    expect(kept.entered(arn)).toEqual(["Begin", "See", "JudgeHolder", "Done"]);
    expect(kept.steps.calls).toEqual(["dynamodb:getItem"]);
  });

  it("that Step Functions has forgotten by now lets its lock go", async () => {
    const gone = "arn:aws:states:us-east-1:123456789012:execution:work:long-ago";
    await kept.client.acquire(key, { owner: `workflow:${gone}` });
    const ended = kept.tellEnded({ key, detail: { executionArn: gone, status: "ABORTED" } });
    await kept.clock.advance(10_000);
    expect(kept.token()).toBeUndefined();
    expect(kept.status(ended)).toBe("SUCCEEDED");
  });

  it.each(["dynamodb:getItem", "sfn:describeExecution", "dynamodb:updateItem"])(
    "is worked on for minutes while a service is out of reach: %s",
    async (action) => {
      const { lease, work } = await kept.working();
      kept.steps.machines.stop(work);
      kept.steps.fail(action, 6);
      await tell(events[0]);
      await kept.clock.advance(60_000);
      expect(kept.token()).toBe(lease.token);
      await kept.clock.advance(10_000);
      expect(kept.ends()).toMatchObject([{ status: "SUCCEEDED" }]);
      expect(kept.token()).toBeUndefined();
    },
  );

  it("is no failure where its lease is let go at the same moment", async () => {
    const { work } = await kept.guarded();
    kept.steps.machines.stop(work);
    kept.steps.fail("dynamodb:updateItem", 1, "DynamoDb.ConditionalCheckFailedException");
    expect(kept.status(await tell(events[0]))).toBe("SUCCEEDED");
  });
});

describe("an execution that was redriven while its lease was let go", () => {
  /** Work that is at work again, whatever was told of it. */
  function redriven(status: "FAILED" | "TIMED_OUT" | "ABORTED" = "ABORTED"): void {
    const describe = kept.steps.machines.describe.bind(kept.steps.machines);
    let looks = 0;
    kept.steps.machines.describe = (arn) => {
      const found = describe(arn);
      if (found.stateMachineArn !== kept.workMachine) return found;
      looks += 1;
      return looks === 1 ? { ...found, status } : found;
    };
  }

  it("is stopped after the event", async () => {
    const { work } = await kept.working();
    redriven();
    await tell({ key, detail: { executionArn: work, status: "ABORTED" } });
    expect(kept.token()).toBeUndefined();
    await kept.clock.advance(5_000);
    expect(kept.describe(work)).toMatchObject(stopped("it was redriven, and its lease had been let go"));
  });

  it("goes on where it has acquired a lease since", async () => {
    const { work } = await kept.working();
    redriven();
    await tell({ key, detail: { executionArn: work, status: "ABORTED" } });
    const again = await kept.client.acquire(key, { owner: `workflow:${work}` });
    await kept.clock.advance(5_000);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.token()).toBe(again.token);
  });

  it.each(["FAILED", "TIMED_OUT", "ABORTED"] as const)(
    "is stopped by its keeper, to which it was %s",
    async (status) => {
      const { work, keeper } = await kept.guarded();
      await kept.clock.advance(beatMs);
      redriven(status);
      await kept.clock.advance(lookMs);
      expect(kept.token()).toBeUndefined();
      await kept.clock.advance(1_000);
      expect(kept.describe(work)).toMatchObject({ error: "LeaseLostError" });
      expect(kept.describe(keeper)).toMatchObject(failed("LeaseLostError", /redriven since/));
    },
  );
});
