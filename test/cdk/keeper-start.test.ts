import { beforeEach, describe, expect, it } from "vitest";
import { beatMs, failed, KeptWork, key, lookMs } from "../support/kept-work.ts";

let kept: KeptWork;

beforeEach(() => {
  kept = new KeptWork();
});

describe("a keeper stops only work that holds the very lease", () => {
  it.each([
    ["a token that was never acquired", { token: "made up" }],
    ["another fencing token, as a late copy of its acquisition would have", { fencingToken: 7 }],
    ["the key of a lock that nobody holds", { key: "free" }],
  ])("with %s it ends in a failure, and touches nothing", async (_, difference) => {
    const { lease, work } = await kept.working();
    const keeper = kept.startKeeper({ lease: { ...lease.toJSON(), ...difference }, guarded: work });
    const before = kept.steps.lease(key);
    await kept.clock.advance(10 * lookMs);
    expect(kept.describe(keeper)).toMatchObject(failed("LeaseNotProvenError"));
    expect(kept.steps.calls).toEqual(["dynamodb:getItem"]);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.steps.lease(key)).toEqual(before);
  });

  it.each([{}, { generation: 3 }])(
    "with its caller's own lease, and the execution of somebody else, it says whose the lease is: %j",
    async (claim) => {
      const victim = kept.startWork();
      const lease = await kept.client.acquire(key, { owner: "the caller" });
      const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: victim, ...claim });
      await kept.clock.advance(10 * lookMs);
      expect(kept.describe(keeper)).toMatchObject(
        failed("LeaseNotProvenError", /its owner is the caller and not workflow:arn:/),
      );
      expect(kept.status(victim)).toBe("RUNNING");
    },
  );

  it("ends without a word when the lease was released before it came", async () => {
    const { lease, work } = await kept.working();
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
    const { lease, work } = await kept.working();
    const before = kept.steps.lease(key);
    const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: work });
    await kept.clock.advance(4_000);
    expect(kept.describe(keeper)).toMatchObject(failed("KeeperNotPermittedError", cause));
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.steps.lease(key)).toEqual(before);
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
