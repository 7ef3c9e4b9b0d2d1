import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { beatMs, KeptWork, key, lookMs } from "../support/kept-work.ts";

let kept: KeptWork;

beforeEach(() => {
  kept = new KeptWork();
});

const notProven = { status: "FAILED", error: "LeaseNotProvenError" };

describe("a keeper stops only work that holds the very lease", () => {
  it.each([
    ["a token that was never acquired", { token: "made up" }],
    ["another fencing token, as a late copy of its acquisition would have", { fencingToken: 7 }],
    ["the key of a lock that nobody holds", { key: "free" }],
  ])("with %s it ends in a failure, and touches nothing", async (_, difference) => {
    const work = kept.startWork();
    const lease = await kept.client.acquire(key, { owner: `workflow:${work}` });
    const keeper = kept.startKeeper({ lease: { ...lease.toJSON(), ...difference }, guarded: work });
    const before = kept.steps.lease(key);
    await kept.clock.advance(10 * lookMs);
    expect(kept.describe(keeper)).toMatchObject(notProven);
    expect(kept.steps.calls).toEqual(["dynamodb:getItem"]);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.steps.lease(key)).toEqual(before);
  });

  it("with a lease of its caller's own, and the execution of somebody else, it says whose the lease is", async () => {
    const victim = kept.startWork();
    const lease = await kept.client.acquire(key, { owner: "the caller" });
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: victim });
    await adminOf(kept.client).forceRelease(key, { token: lease.token });
    await kept.client.acquire(key, { owner: "the caller" });
    await kept.clock.advance(10 * lookMs);
    expect(kept.describe(keeper)).toMatchObject(notProven);
    expect(kept.status(victim)).toBe("RUNNING");
  });

  it("also as one that claims to be a later execution of a keeper", async () => {
    const victim = kept.startWork();
    const lease = await kept.client.acquire(key, { owner: "the caller" });
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: victim, generation: 3 });
    await kept.clock.advance(10 * lookMs);
    expect(kept.describe(keeper)).toMatchObject({
      ...notProven,
      cause: expect.stringContaining("its owner is the caller and not workflow:arn:"),
    });
    expect(kept.status(victim)).toBe("RUNNING");
  });

  it("ends without a word when the lease was released before it came", async () => {
    const work = kept.startWork();
    const lease = await kept.client.acquire(key, { owner: `workflow:${work}` });
    await lease.release();
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: work });
    await kept.clock.advance(beatMs);
    expect(kept.status(keeper)).toBe("SUCCEEDED");
    expect(kept.status(work)).toBe("RUNNING");
  });
});

describe("what a keeper may not do shows before it has kept anything", () => {
  it.each([
    ["sfn:stopExecution", "Sfn.SfnException", /guard\(\).*is not authorized to perform it/],
    ["sfn:describeExecution", "Sfn.SfnException", /guard\(\).*is not authorized to perform it/],
    ["dynamodb:getItem", "DynamoDb.DynamoDbException", /is not authorized to perform it/],
    ["dynamodb:updateItem", "DynamoDb.DynamoDbException", /is not authorized to perform it/],
  ])("%s", async (action, error, cause) => {
    kept.steps.fail(
      action,
      1_000,
      error,
      "User: arn:aws:sts::1:assumed-role/x is not authorized to perform it",
    );
    const work = kept.startWork();
    const lease = await kept.client.acquire(key, { owner: `workflow:${work}` });
    const before = kept.steps.lease(key);
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: work });
    await kept.clock.advance(4_000);
    expect(kept.describe(keeper)).toMatchObject({
      status: "FAILED",
      error: "KeeperNotPermittedError",
      cause: expect.stringMatching(cause),
    });
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.steps.lease(key)).toEqual(before);
  });

  it("and an execution that Step Functions does not know of yet is none that has ended", async () => {
    kept.steps.fail("sfn:describeExecution", 1, "Sfn.ExecutionDoesNotExistException");
    const { lease, keeper } = await kept.guarded();
    expect(await kept.beats(20)).toBeGreaterThan(0);
    expect(kept.status(keeper)).toBe("RUNNING");
    expect(kept.token()).toBe(lease.token);
  });

  it("and a request that fails in passing is no missing permission", async () => {
    kept.steps.fail("dynamodb:getItem", 1);
    kept.steps.fail("sfn:stopExecution", 1, "Sfn.ThrottlingException", "Rate exceeded");
    kept.steps.fail("sfn:describeExecution", 1, "Sfn.ThrottlingException", "Rate exceeded");
    const { keeper } = await kept.guarded();
    expect(await kept.beats(20)).toBeGreaterThan(0);
    expect(kept.status(keeper)).toBe("RUNNING");
  });
});

it.each(["dynamodb:getItem", "sfn:stopExecution", "sfn:describeExecution", "dynamodb:updateItem"])(
  "a keeper goes on in time after a first request that hangs: %s",
  async (action) => {
    kept.steps.hang(action, 1);
    const { work, keeper } = await kept.guarded();
    expect(await kept.beats(4)).toBeGreaterThan(0);
    expect([kept.status(work), kept.status(keeper)]).toEqual(["RUNNING", "RUNNING"]);
  },
);
