import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { beatMs, KeptWork, key, lookMs } from "../support/kept-work.ts";

let kept: KeptWork;

beforeEach(() => {
  kept = new KeptWork();
});

const denied = "Sfn.SfnException";
const notProven = { status: "FAILED", error: "LeaseNotProvenError" };
const notPermitted = { status: "FAILED", error: "KeeperNotPermittedError" };

/** A machine that starts a keeper and waits for its answer, as a leased workflow does. */
function awaiting(seconds: number): string {
  return kept.steps.define("starter", {
    QueryLanguage: "JSONata",
    StartAt: "Start",
    States: {
      Start: {
        Type: "Task",
        Resource: "arn:aws:states:::aws-sdk:sfn:startExecution.waitForTaskToken",
        Arguments: {
          StateMachineArn: kept.keeperMachine,
          Input:
            "{% $string($merge([$states.input, {'guarded': $states.context.Execution.Id, 'taskToken': $states.context.Task.Token}])) %}",
        },
        TimeoutSeconds: seconds,
        Next: "Work",
      },
      Work: { Type: "Wait", Seconds: 1_000, End: true },
    },
  });
}

/** Starts it with a lease of its own. */
async function startAwaiting(seconds = 6): Promise<string> {
  const stateMachineArn = awaiting(seconds);
  const name = "one";
  const arn = `${stateMachineArn.replace(":stateMachine:", ":execution:")}:${name}`;
  const lease = await kept.client.acquire(key, { owner: `workflow:${arn}` });
  kept.steps.machines.start({ stateMachineArn, name, input: { lease: lease.toJSON() } });
  await kept.clock.advance(0);
  return arn;
}

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
  it.each(["sfn:stopExecution", "sfn:describeExecution"])("%s", async (action) => {
    kept.steps.fail(
      action,
      1_000,
      denied,
      "User: arn:aws:sts::1:assumed-role/x is not authorized to perform it",
    );
    const { work, keeper } = await kept.guarded();
    expect(kept.describe(keeper)).toMatchObject({
      ...notPermitted,
      cause: expect.stringMatching(/guard\(\).*is not authorized to perform it/),
    });
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.steps.calls).not.toContain("dynamodb:updateItem");
  });

  it("sfn:sendTaskSuccess, and the work does not begin", async () => {
    kept.steps.fail("sfn:sendTaskSuccess", 1_000, denied, "AccessDeniedException");
    const starter = await startAwaiting();
    expect(kept.keepers()).toMatchObject([notPermitted]);
    expect(kept.describe(starter)).toMatchObject(notPermitted);
  });

  it.each(["dynamodb:getItem", "dynamodb:updateItem"])(
    "%s, and whoever waits is told at once",
    async (action) => {
      kept.steps.fail(action, 1_000, "DynamoDb.DynamoDbException", "User: x is not authorized to perform it");
      const starter = await startAwaiting(60);
      await kept.clock.advance(4_000);
      expect(kept.describe(starter)).toMatchObject({
        ...notPermitted,
        cause: expect.stringContaining("is not authorized to perform it"),
      });
      expect(kept.keepers()).toMatchObject([notPermitted]);
    },
  );

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

describe("whoever starts a keeper with a task token", () => {
  it("is told what the lease is, when it is proven and renewed, and not before", async () => {
    const starter = await startAwaiting();
    expect(kept.entered(starter)).toEqual(["Start", "Work"]);
    const { version, expiresAt } = kept.steps.lease(key) ?? {};
    expect(kept.answers).toEqual([{ version, expiresAt }]);
    const calls = kept.steps.calls;
    expect(calls.indexOf("dynamodb:updateItem")).toBeGreaterThan(calls.indexOf("dynamodb:getItem"));
    expect(calls.indexOf("sfn:sendTaskSuccess")).toBeGreaterThan(calls.indexOf("dynamodb:updateItem"));
  });

  it("is told again when an answer was lost, and the keeper goes on", async () => {
    kept.steps.loseAnswers("sfn:sendTaskSuccess", 1);
    const starter = await startAwaiting();
    expect(await kept.beats(20)).toBeGreaterThan(0);
    expect(kept.entered(starter)).toEqual(["Start", "Work"]);
    expect(kept.keepers()).toMatchObject([{ status: "RUNNING" }]);
  });
});
