import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { StepFunctions } from "../support/step-functions.ts";

const leaseDurationMs = 9_000;
const beatMs = 3_000;
const key = "import";

let clock: ManualClock;
let steps: StepFunctions;
let client: LeaseClient;
let keeper: string;
let work: string;

beforeEach(() => {
  clock = new ManualClock();
  steps = new StepFunctions(clock);
  client = new LeaseClient({ store: steps.store, clock, owner: "holder", leaseDurationMs });
  keeper = steps.define("keeper", keeperDefinition({ tableName: "leases", retentionMs: 604_800_000 }));
  work = steps.define("work", {
    QueryLanguage: "JSONata",
    StartAt: "Long",
    States: { Long: { Type: "Wait", Seconds: 1_000_000, End: true } },
  });
});

/** Starts a long execution that holds the lock, and a keeper beside it. */
async function guarded(): Promise<{
  lease: Awaited<ReturnType<LeaseClient["acquire"]>>;
  work: string;
  keeper: string;
}> {
  const lease = await client.acquire(key);
  const { executionArn } = steps.machines.start({ stateMachineArn: work });
  const input = { lease: lease.toJSON(), guarded: executionArn };
  return { lease, work: executionArn, keeper: startKeeper(input) };
}

function startKeeper(input: unknown): string {
  return steps.machines.start({ stateMachineArn: keeper, input }).executionArn;
}

const status = (arn: string): string => steps.machines.describe(arn).status;
const token = (): unknown => steps.lease(key)?.token;
const expiresAt = (): number => Number(steps.lease(key)?.expiresAt);

describe("a keeper", () => {
  it("keeps the lease for many times its duration, and nobody gets in", async () => {
    const { lease, keeper } = await guarded();
    const other = new LeaseClient({ store: steps.store, clock, owner: "other", leaseDurationMs });
    for (let beat = 0; beat < 100; beat += 1) {
      await clock.advance(beatMs);
      expect(await other.tryAcquire(key)).toBeUndefined();
      expect(expiresAt()).toBeGreaterThan(clock.now());
    }
    expect(token()).toBe(lease.token);
    expect(status(keeper)).toBe("RUNNING");
  });

  it("costs 4 state transitions and 1 write a beat", async () => {
    const { keeper } = await guarded();
    await clock.advance(beatMs);
    const before = steps.machines.history(keeper).entered.length;
    steps.calls.length = 0;
    await clock.advance(10 * beatMs);
    expect(steps.machines.history(keeper).entered.length - before).toBe(40);
    expect(steps.calls.filter((call) => call === "dynamodb:updateItem")).toHaveLength(10);
    expect(steps.calls.filter((call) => call !== "sfn:describeExecution")).toHaveLength(10);
  });

  it("releases the lock when the guarded execution was stopped", async () => {
    const { lease, work, keeper } = await guarded();
    steps.machines.stop(work);
    await clock.advance(beatMs);
    expect(token()).toBeUndefined();
    expect(steps.lease(key)?.releasedToken).toBe(lease.token);
    expect(steps.lease(key)?.fence).toBe(lease.fencingToken);
    expect(status(keeper)).toBe("SUCCEEDED");
  });

  it("releases the lock when the guarded execution is gone from Step Functions' memory", async () => {
    const lease = await client.acquire(key);
    const gone = "arn:aws:states:us-east-1:123456789012:execution:work:never-was";
    const keeper = startKeeper({ lease: lease.toJSON(), guarded: gone });
    await clock.advance(beatMs);
    expect(token()).toBeUndefined();
    expect(status(keeper)).toBe("SUCCEEDED");
  });

  it("ends within a beat when the lease was released, and leaves the next holder alone", async () => {
    const { lease, work, keeper } = await guarded();
    await lease.release();
    const next = await client.acquire(key);
    await next.release();
    const third = await client.acquire(key);
    steps.machines.stop(work);
    await clock.advance(beatMs);
    expect(status(keeper)).toBe("SUCCEEDED");
    expect(token()).toBe(third.token);
  });

  it("does not stop work that released its lease and ends a moment later", async () => {
    const { lease, work, keeper } = await guarded();
    await lease.release();
    await clock.advance(beatMs);
    expect(status(keeper)).toBe("SUCCEEDED");
    expect(status(work)).toBe("RUNNING");
  });

  it("stops the guarded execution when another holder has the lock, and fails with LeaseLostError", async () => {
    const { lease, work, keeper } = await guarded();
    await client.forceRelease(key, { token: lease.token });
    const thief = await client.acquire(key);
    await clock.advance(beatMs);
    expect(steps.machines.describe(work)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    expect(steps.machines.describe(keeper)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
    expect(token()).toBe(thief.token);
  });

  it("stops the guarded execution when its lease was broken, and others have come and gone since", async () => {
    const { lease, work } = await guarded();
    await client.forceRelease(key, { token: lease.token });
    await (await client.acquire(key)).release();
    await clock.advance(beatMs);
    expect(steps.machines.describe(work)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
  });

  it("stops the guarded execution and releases when its holder is asked to stop", async () => {
    const { lease, work, keeper } = await guarded();
    await client.requestRevocation(key, { token: lease.token, reason: "a newer run" });
    await clock.advance(beatMs);
    expect(steps.machines.describe(work)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    expect(token()).toBeUndefined();
    expect(status(keeper)).toBe("SUCCEEDED");
  });

  it("goes on when a renewal landed and its answer was lost", async () => {
    const { lease, keeper } = await guarded();
    steps.loseAnswers("dynamodb:updateItem", 1);
    await clock.advance(20 * beatMs);
    expect(token()).toBe(lease.token);
    expect(expiresAt()).toBeGreaterThan(clock.now());
    expect(status(keeper)).toBe("RUNNING");
  });

  it("goes on beside a client that renews the same lease", async () => {
    const { lease, keeper } = await guarded();
    for (let round = 0; round < 10; round += 1) {
      await clock.advance(beatMs);
      const adopted = client.adopt(lease.toJSON());
      await adopted.renew();
      expect(adopted.held).toBe(true);
    }
    expect(status(keeper)).toBe("RUNNING");
    expect(token()).toBe(lease.token);
  });

  it("survives a failing service for less than the lease", async () => {
    const { lease, keeper } = await guarded();
    await clock.advance(beatMs);
    steps.fail("dynamodb:updateItem", 5);
    await clock.advance(10 * beatMs);
    expect(status(keeper)).toBe("RUNNING");
    expect(token()).toBe(lease.token);
    expect(expiresAt()).toBeGreaterThan(clock.now());
  });

  it("stops the guarded execution when the service fails for longer than the lease", async () => {
    const { work, keeper } = await guarded();
    steps.fail("dynamodb:updateItem", 1_000);
    steps.fail("dynamodb:getItem", 1_000);
    await clock.advance(2 * leaseDurationMs);
    expect(steps.machines.describe(work)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    expect(steps.machines.describe(keeper)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
  });

  it("keeps the lease while Step Functions does not tell how the work is, but not for ever", async () => {
    const { lease, keeper } = await guarded();
    steps.fail("sfn:describeExecution", 6, "Sfn.ThrottlingException");
    await clock.advance(10 * beatMs);
    expect(token()).toBe(lease.token);
    expect(status(keeper)).toBe("RUNNING");
    steps.fail("sfn:describeExecution", 100_000, "Sfn.AccessDeniedException");
    await clock.advance(60 * beatMs);
    expect(steps.machines.describe(keeper)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
  });

  it("hands over to a fresh execution after 1,000 beats, far below 25,000 events, without a gap", async () => {
    const { lease, work, keeper: first } = await guarded();
    let closest = Number.POSITIVE_INFINITY;
    for (let beat = 0; beat < 2_100; beat += 1) {
      await clock.advance(beatMs);
      closest = Math.min(closest, expiresAt() - clock.now());
    }
    const keepers = steps.machines.executions().filter(({ executionArn }) => executionArn !== work);
    expect(keepers).toHaveLength(3);
    expect(steps.machines.describe(first)).toMatchObject({
      status: "SUCCEEDED",
      output: { handedOver: true },
    });
    expect(keepers.filter((one) => one.status === "RUNNING")).toHaveLength(1);
    expect(steps.machines.history(first).events).toBeLessThan(15_000);
    expect(closest).toBeGreaterThan(0);
    expect(token()).toBe(lease.token);
    steps.machines.stop(work);
    await clock.advance(2 * beatMs);
    expect(token()).toBeUndefined();
  });

  it("carries on by itself while a hand-over fails, and hands over later", async () => {
    const { lease, work, keeper: first } = await guarded();
    for (let beat = 0; beat < 998; beat += 1) await clock.advance(beatMs);
    steps.fail("sfn:startExecution", 3, "Sfn.ExecutionLimitExceededException");
    for (let beat = 0; beat < 60; beat += 1) await clock.advance(beatMs);
    expect(status(first)).toBe("SUCCEEDED");
    expect(status(work)).toBe("RUNNING");
    expect(token()).toBe(lease.token);
    expect(expiresAt()).toBeGreaterThan(clock.now());
  });

  it("keeps a lease without an execution until the time that it is told, in 3 transitions a beat", async () => {
    const lease = await client.acquire(key);
    const keeper = startKeeper({ lease: lease.toJSON(), until: clock.now() + 10 * leaseDurationMs });
    await clock.advance(beatMs);
    const before = steps.machines.history(keeper).entered.length;
    await clock.advance(10 * beatMs);
    expect(steps.machines.history(keeper).entered.length - before).toBe(30);
    expect(token()).toBe(lease.token);
    await clock.advance(10 * leaseDurationMs);
    expect(token()).toBeUndefined();
    expect(status(keeper)).toBe("SUCCEEDED");
  });

  it.each([
    ["nothing", {}],
    ["no lease", { guarded: "arn:aws:states:us-east-1:123456789012:execution:work:x" }],
    ["a lease that is a text", { lease: "mine", until: 1 }],
    ["a lease without a token", { lease: { key, version: 1, leaseDurationMs: 1, expiresAt: 1 }, until: 1 }],
    ["an empty key", { lease: { ...handle(), key: "" }, until: 1 }],
    ["a duration that is a text", { lease: { ...handle(), leaseDurationMs: "long" }, until: 1 }],
    ["neither guarded nor until", { lease: handle() }],
    ["a lease of another table", { lease: { ...handle(), tableName: "others" }, until: 1 }],
  ])("refuses an input with %s by name, and changes nothing", async (_, input) => {
    const refusing = startKeeper(input);
    await clock.advance(beatMs);
    expect(steps.machines.describe(refusing)).toMatchObject({
      status: "FAILED",
      error: "InvalidOptionsError",
    });
    expect(steps.calls).toEqual([]);
  });

  it("takes a handle that names its table by ARN", async () => {
    const lease = await client.acquire(key);
    const tableName = "arn:aws:dynamodb:us-east-1:123456789012:table/leases";
    const keeper = startKeeper({ lease: { ...lease.toJSON(), tableName }, until: clock.now() + 60_000 });
    await clock.advance(beatMs);
    expect(status(keeper)).toBe("RUNNING");
  });
});

function handle(): Record<string, unknown> {
  return {
    tableName: "leases",
    key,
    owner: "o",
    token: "t",
    version: 1,
    fencingToken: 1,
    acquiredAt: 1,
    expiresAt: 2,
    leaseDurationMs: 9_000,
  };
}
