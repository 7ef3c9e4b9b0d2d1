import { type Clock, LeaseClient } from "@leasehold/client";
import { cancel } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { fixedKey, workflowDefinition } from "../../packages/cdk/src/workflow/workflow-definition.ts";
import type { WorkflowTerms } from "../../packages/cdk/src/workflow/workflow-terms.ts";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { machineArn, StepFunctions, startedBy, workflowTerms } from "../support/step-functions.ts";

const leaseDurationMs = 9_000;
const beatMs = 3_000;
const key = "import";

let clock: ManualClock;
let steps: StepFunctions;
let other: LeaseClient;

/** Work that takes a minute and says what it was given. */
const minute = {
  StartAt: "Minute",
  States: {
    Minute: { Type: "Wait", QueryLanguage: "JSONata", Seconds: 60, Next: "Tell" },
    Tell: {
      Type: "Pass",
      QueryLanguage: "JSONata",
      Output: { given: "{% $states.input %}", lease: "{% $lease %}" },
      End: true,
    },
  },
};
const quick = { StartAt: "Now", States: { Now: { Type: "Pass", QueryLanguage: "JSONata", End: true } } };

function define(terms: Partial<WorkflowTerms> = {}): string {
  return steps.define("workflow", workflowDefinition(workflowTerms(minute, terms)));
}

function start(stateMachineArn: string, input: unknown = { key, orders: 7 }): string {
  return steps.machines.start({ stateMachineArn, input }).executionArn;
}

const entered = (arn: string): string[] =>
  steps.machines.history(arn).entered.map(({ stateName }) => stateName);
const describeExecution = (arn: string) => steps.machines.describe(arn);
const token = (): unknown => steps.lease(key)?.token;

beforeEach(() => {
  clock = new ManualClock();
  steps = new StepFunctions(clock);
  other = new LeaseClient({ store: steps.store, clock, owner: "other", leaseDurationMs });
  steps.define("keeper", keeperDefinition({ tableName: "leases", retentionMs: 604_800_000 }));
});

describe("a leased workflow", () => {
  it("does its work under a lease that its keeper renews and a client can adopt, and releases it", async () => {
    const execution = start(define());
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      if (second < 59) expect(await other.tryAcquire(key)).toBeUndefined();
    }
    const { status, output } = describeExecution(execution);
    expect(status).toBe("SUCCEEDED");
    expect(output).toMatchObject({
      given: { key, orders: 7 },
      lease: { tableName: "leases", key, leaseDurationMs, fencingToken: expect.any(Number) },
    });
    const { lease } = output as { lease: Parameters<LeaseClient["adopt"]>[0] };
    expect(other.adopt(lease).fence().ExpressionAttributeValues).toEqual({
      ":leaseFence": { N: String(lease.fencingToken) },
    });
    expect((await other.acquire(key)).fencingToken).toBe(lease.fencingToken + 1);
    await clock.advance(beatMs);
    // The console of Step Functions links the two by that member.
    expect(steps.machines.executions(machineArn("keeper"))).toMatchObject([
      { status: "SUCCEEDED", input: { guarded: execution, [startedBy]: execution } },
    ]);
  });

  it("costs 2 writes and 6 transitions, and its keeper's start 1 write and 10 transitions", async () => {
    const execution = start(define({ work: quick }));
    await clock.advance(100);
    expect(steps.calls).toEqual([
      "dynamodb:updateItem",
      "sfn:startExecution.waitForTaskToken",
      "dynamodb:getItem",
      "sfn:stopExecution",
      "sfn:describeExecution",
      "dynamodb:updateItem",
      "sfn:sendTaskSuccess",
      "dynamodb:updateItem",
    ]);
    expect(entered(execution)).toHaveLength(7);
    const [keeper] = steps.machines.executions(machineArn("keeper"));
    const states = entered(String(keeper?.executionArn));
    expect([states.length, states.at(-1)]).toEqual([10 + 1, "Pause1"]);
  });

  it("fails with LeaseLostError when its lease was gone before its work was done", async () => {
    const execution = start(define());
    await clock.advance(20_000);
    const keepers = steps.machines.executions(machineArn("keeper"));
    for (const { executionArn } of keepers) steps.machines.stop(executionArn);
    await clock.advance(leaseDurationMs + 2_000);
    const thief = await other.acquire(key, { leaseDurationMs: 120_000 });
    await clock.advance(60_000);
    expect(describeExecution(execution)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
    expect(token()).toBe(thief.token);
  });

  it("succeeds when its work has let the lock go itself, and another caller that has given up has left its mark", async () => {
    const execution = start(define());
    await clock.advance(20_000);
    const keeper = steps.machines.executions(machineArn("keeper"))[0]?.input as {
      readonly lease: Parameters<LeaseClient["adopt"]>[0];
    };
    expect(await other.adopt(keeper.lease).release()).toBe(true);
    steps.store.updateNow(cancel({ key }, { token: "given up", now: clock.now(), retentionMs: 1 }).request());
    await clock.advance(60_000);
    expect(describeExecution(execution)).toMatchObject({ status: "SUCCEEDED" });
  });

  it("goes on when the grant landed and its answer was lost", async () => {
    const definition = define();
    steps.loseAnswers("dynamodb:updateItem", 1);
    const execution = start(definition);
    await clock.advance(70_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
    expect(token()).toBeUndefined();
  });

  it("takes back a grant that may have landed when no answer comes at all", async () => {
    const definition = define();
    steps.loseAnswers("dynamodb:updateItem", 1);
    steps.fail("dynamodb:getItem", 4);
    const execution = start(definition);
    await clock.advance(30_000);
    expect(describeExecution(execution).status).toBe("FAILED");
    expect(token()).toBeUndefined();
  });

  it("does no work while its keeper cannot prove the lease, lets the lock go and says where to look", async () => {
    const definition = define();
    steps.fail("dynamodb:getItem", 1_000);
    const execution = start(definition);
    await clock.advance(20_000);
    expect(describeExecution(execution)).toMatchObject({
      status: "FAILED",
      error: "LeaseNotProvenError",
      cause: expect.stringContaining("DynamoDb.InternalServerErrorException"),
    });
    expect(entered(execution)).not.toContain("Minute");
    expect(token()).toBeUndefined();
  });

  it.each([
    [3_000, "LeaseNotProvenError", /States\.Timeout/],
    [9_000, "LeaseNotProvenError", /States\.Timeout/],
    [180_000, "KeeperNotReadyError", /see its execution [0-9a-f]{64}-0-0 of arn:aws:states:.*:keeper$/],
  ])(
    "does no work while its keeper of a lease of %i ms gets no answer, and says where to look",
    async (leaseDurationMs, error, cause) => {
      const definition = define({ leaseDurationMs });
      steps.hang("dynamodb:getItem", 20);
      const execution = start(definition);
      await clock.advance(120_000);
      expect(describeExecution(execution)).toMatchObject({
        status: "FAILED",
        error,
        cause: expect.stringMatching(cause),
      });
      expect(entered(execution)).not.toContain("Minute");
      expect(token()).toBeUndefined();
    },
  );

  it("does no work when its keeper has died, and the keeper's answer comes after the end of the lease", async () => {
    const { machines } = steps;
    const send = machines.sendTaskSuccess.bind(machines);
    machines.sendTaskSuccess = (...answer) =>
      void clock.schedule(() => send(...answer), leaseDurationMs + 3_000);
    const execution = start(define());
    await clock.advance(500);
    for (const { executionArn } of machines.executions(machineArn("keeper"))) machines.stop(executionArn);
    await clock.advance(leaseDurationMs + 2_000);
    const thief = await other.acquire(key, { leaseDurationMs: 120_000 });
    await clock.advance(2_000);
    expect(describeExecution(execution)).toMatchObject({
      status: "FAILED",
      error: "KeeperNotReadyError",
      cause: expect.stringContaining("see its execution"),
    });
    expect(entered(execution)).not.toContain("Minute");
    expect(token()).toBe(thief.token);
  });

  it.each([
    ["sfn:startExecution.waitForTaskToken", "Sfn.SfnException", 8_000],
    ["sfn:startExecution.waitForTaskToken", "Sfn.AccessDeniedException", 0],
    ["sfn:describeExecution", "Sfn.SfnException", 0],
    ["sfn:sendTaskSuccess", "Sfn.SfnException", 0],
    ["dynamodb:getItem", "DynamoDb.DynamoDbException", 4_000],
  ])(
    "fails by name when %s is denied with %s, within %i ms, and lets the lock go",
    async (action, error, ms) => {
      const definition = define();
      steps.fail(action, 1_000, error, "User: x is not authorized to perform it");
      const execution = start(definition);
      await clock.advance(ms);
      expect(describeExecution(execution)).toMatchObject({
        status: "FAILED",
        error: "KeeperNotPermittedError",
        cause: expect.stringContaining("is not authorized to perform it"),
      });
      expect(steps.machines.executions(machineArn("keeper")).length).toBeLessThan(2);
      expect(token()).toBeUndefined();
    },
  );

  it.each([
    [3_000, 160],
    [3_000, 250],
    [10_000, 480],
    [10_000, 1_000],
    [30_000, 3_000],
  ])(
    "with a lease of %i ms starts and works while each state takes %i ms",
    async (leaseDurationMs, stateMs) => {
      clock = new ManualClock();
      steps = new StepFunctions(clock, undefined, { transitionMs: () => stateMs });
      steps.define("keeper", keeperDefinition({ tableName: "leases", retentionMs: 604_800_000 }));
      const execution = start(define({ leaseDurationMs }));
      let isKept = true;
      for (let time = 0; describeExecution(execution).status === "RUNNING" && time < 300_000; time += 100) {
        await clock.advance(100);
        const isAtWork =
          entered(execution).includes("Minute") && !entered(execution).includes("Leasehold_Release");
        if (isAtWork && Number(steps.lease(key)?.expiresAt) <= clock.now()) isKept = false;
      }
      expect(describeExecution(execution)).toMatchObject({ status: "SUCCEEDED" });
      expect(isKept).toBe(true);
      expect(token()).toBeUndefined();
    },
  );

  it("hands a lease to its work that ends when the table says so, and has its own length from then on", async () => {
    const execution = start(define({ leaseDurationMs: 3_000 }));
    await clock.advance(0);
    expect(steps.lease(key)).toMatchObject({ leaseDurationMs: 3_000, expiresAt: clock.now() + 3_000 });
    const { expiresAt, version } = steps.lease(key) ?? {};
    await clock.advance(60_000);
    expect(describeExecution(execution)).toMatchObject({
      output: { lease: { expiresAt, version, leaseDurationMs: 3_000 } },
    });
  });

  it("works with a second keeper when the answer to the start of the first was lost", async () => {
    const definition = define();
    steps.loseAnswers("sfn:startExecution.waitForTaskToken", 1);
    steps.hang("sfn:sendTaskSuccess", 1);
    const execution = start(definition);
    for (let beat = 0; beat < 22; beat += 1) {
      await clock.advance(beatMs);
      if (describeExecution(execution).status === "RUNNING") {
        expect(Number(steps.lease(key)?.expiresAt)).toBeGreaterThan(clock.now());
      }
    }
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
    expect(token()).toBeUndefined();
    await clock.advance(beatMs);
    const keepers = steps.machines.executions(machineArn("keeper"));
    expect(keepers.map(({ status }) => status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
  });

  it("begins its work, once, when the first answer of its keeper did not arrive", async () => {
    steps.fail("sfn:sendTaskSuccess", 1, "Sfn.SfnException", "Rate exceeded");
    const execution = start(define());
    await clock.advance(65_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
    expect(entered(execution).filter((name) => name === "Minute")).toHaveLength(1);
    await clock.advance(beatMs);
    expect(steps.machines.executions(machineArn("keeper"))).toMatchObject([{ status: "SUCCEEDED" }]);
  });

  it("fails when its lease was broken before the answer of its acquisition was known", async () => {
    steps.loseAnswers("dynamodb:updateItem", 1);
    const execution = start(define({ whenHeld: "wait" }));
    await clock.advance(0);
    await adminOf(other).forceRelease(key, { token: String(token()) });
    await clock.advance(8_000);
    expect(describeExecution(execution)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
    expect(entered(execution)).not.toContain("Minute");
  });

  it("keeps its result when its release landed unseen, and another's release came in between", async () => {
    const execution = start(define());
    await clock.advance(59_900);
    steps.loseAnswers("dynamodb:updateItem", 1);
    await clock.advance(300);
    await (await other.acquire(key)).release();
    await clock.advance(8_000);
    expect(describeExecution(execution)).toMatchObject({ status: "SUCCEEDED", output: { given: { key } } });
  });

  it("keeps its result when the release is not confirmed, and its keeper releases", async () => {
    const definition = define();
    const execution = start(definition);
    await clock.advance(59_500);
    steps.fail("dynamodb:updateItem", 4);
    await clock.advance(30_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
    expect(token()).toBeUndefined();
  });

  it("takes over from a holder whose lease is over, by more than the clocks may differ", async () => {
    const dead = await other.acquire(key);
    const definition = define();
    await clock.advance(leaseDurationMs + 500);
    expect(describeExecution(await run(definition)).error).toBe("LeaseUnavailableError");
    await clock.advance(600);
    const execution = start(definition);
    await clock.advance(1_000);
    expect(steps.lease(key)).toMatchObject({ fence: dead.fencingToken + 1 });
    await clock.advance(70_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
  });

  it.each([
    ["no key", {}],
    ["an empty key", { key: "" }],
    ["a key that is a number", { key: 7 }],
    ["a key that is too long", { key: "k".repeat(2_049) }],
  ])("refuses an input with %s by name, and changes nothing", async (_, input) => {
    const execution = await run(define(), input);
    expect(describeExecution(execution)).toMatchObject({ status: "FAILED", error: "InvalidOptionsError" });
    expect(steps.calls).toEqual([]);
  });

  it("with a key of its own asks nothing of the input, and takes quotes as they are", async () => {
    const execution = start(define({ key: fixedKey("it's \"\\ mine") }), {});
    await clock.advance(100);
    expect(steps.lease("it's \"\\ mine")?.token).toBeDefined();
    expect(describeExecution(execution).status).toBe("RUNNING");
  });
});

describe("while somebody else holds the lock, a workflow", () => {
  it("that is to fail says who holds it", async () => {
    await other.acquire(key);
    const { status, error, cause } = describeExecution(await run(define()));
    expect([status, error]).toEqual(["FAILED", "LeaseUnavailableError"]);
    expect(cause).toMatch(/other/);
  });

  it("that is to skip succeeds without working", async () => {
    await other.acquire(key);
    const { status, output } = describeExecution(await run(define({ whenHeld: "skip" })));
    expect(status).toBe("SUCCEEDED");
    expect(output).toEqual({ skipped: true, key, reason: "held" });
  });

  it("that is to wait for weeks is woken all the same", async () => {
    const day = 86_400_000;
    const lease = await other.acquire(key, { leaseDurationMs: 30 * day });
    const execution = start(define({ whenHeld: "wait", waitMs: 60 * day }));
    await clock.advance(10 * day);
    steps.store.collectGarbage(clock.now());
    await lease.release();
    await steps.wake();
    await clock.advance(65_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
  });

  it("that is to wait makes no request until it is woken, then does its work", async () => {
    const lease = await other.acquire(key, { leaseDurationMs: 200_000 });
    const execution = start(define({ whenHeld: "wait" }));
    await clock.advance(1_000);
    steps.calls.length = 0;
    await clock.advance(150_000);
    expect(steps.calls).toEqual([]);
    await lease.release();
    await steps.wake();
    await clock.advance(100);
    expect(token()).toBeDefined();
    await clock.advance(61_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
  });

  it("that is to wait tries by itself when the holder's lease is over and nobody woke it", async () => {
    await other.acquire(key);
    const execution = start(define({ whenHeld: "wait" }));
    await clock.advance(leaseDurationMs + 3_000);
    expect(steps.lease(key)?.owner).toMatch(/^workflow:/);
    await clock.advance(61_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
  });

  it("that is to wait looks less and less often at a holder that stays alive, every five minutes at last", async () => {
    const lease = await other.acquire(key, { heartbeat: true });
    const execution = start(define({ whenHeld: "wait", waitMs: 36_000_000 }));
    await clock.advance(3_600_000);
    expect(lease.held).toBe(true);
    const parkedAt = steps.machines
      .history(execution)
      .entered.filter(({ stateName }) => stateName === "Leasehold_Park")
      .map(({ at }) => Date.parse(at));
    const pauses = parkedAt.slice(1).map((at, index) => at - (parkedAt[index] ?? 0));
    // While a lease is longer than its own pause, it waits for the lease's end, and the allowance.
    const longer = pauses.filter((ms) => ms > 11_000).map((ms) => ms / 1_000);
    expect([...longer.slice(0, 5), ...new Set(longer.slice(5))]).toEqual([16, 32, 64, 128, 256, 300]);
    await lease.release();
  });

  it.each([false, true])(
    "that is to wait watches a lease whose expiry is of its holder's own clock for all of its duration; with a heartbeat: %s",
    async (heartbeat) => {
      const store = new ScriptedStore(steps.store);
      // Its answers tell no time.
      store.isLocal = false;
      const late: Clock = {
        now: () => clock.now() - 3_600_000,
        monotonic: () => clock.monotonic(),
        schedule: (callback, delayMs) => clock.schedule(callback, delayMs),
      };
      const untold = new LeaseClient({ store, clock: late, owner: "untold", leaseDurationMs });
      const lease = await untold.acquire(key, { heartbeat });
      start(define({ whenHeld: "wait" }));
      const isHeld = (): boolean => steps.lease(key)?.owner === "untold";
      for (let time = 0; isHeld() && time < 10 * leaseDurationMs; time += 100) await clock.advance(100);
      expect([isHeld(), lease.held]).toEqual([heartbeat, heartbeat]);
      await lease.release();
    },
  );

  it("that is to wait does not park on a lock that was let go in the meantime", async () => {
    const lease = await other.acquire(key);
    const definition = define({ whenHeld: "wait" });
    let isReleased = false;
    const seeHolder = steps.store.peek.bind(steps.store);
    steps.store.peek = (itemKey) => {
      const item = seeHolder(itemKey);
      // The release falls between the look and the parking.
      if (!isReleased && item?.token === lease.token) {
        isReleased = true;
        void lease.release();
      }
      return item;
    };
    const execution = start(definition);
    await clock.advance(1_000);
    expect(steps.lease(key)?.owner).toMatch(/^workflow:/);
    await clock.advance(61_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
  });

  it("that is to wait gives up when its time is over, and says so by name", async () => {
    const lease = await other.acquire(key, { heartbeat: true });
    const execution = start(define({ whenHeld: "wait", waitMs: 30_000 }));
    await clock.advance(40_000);
    expect(describeExecution(execution)).toMatchObject({ status: "FAILED", error: "LeaseUnavailableError" });
    await lease.release();
  });

  it("that is to replace it asks it to stop, and takes the lock when it has let go", async () => {
    const definition = define({ whenHeld: "replace" });
    const first = start(definition);
    await clock.advance(10_000);
    const second = start(definition);
    await clock.advance(100);
    expect(steps.lease(key)?.revocation).toMatch(/^replaced by workflow:/);
    await clock.advance(beatMs);
    expect(describeExecution(first)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    await steps.wake();
    await clock.advance(61_000);
    expect(describeExecution(second).status).toBe("SUCCEEDED");
  });
});

describe("with data at Step Functions' and DynamoDB's limits, a workflow", () => {
  const quota = 256 * 1024;
  const sized = (bytes: number): { key: string; filler: string } => {
    const empty = { key, filler: "" };
    return { key, filler: "x".repeat(bytes - Buffer.byteLength(JSON.stringify(empty))) };
  };
  it("takes an input of 256 KiB, and gives an output of that less the 2 bytes of the list that it comes in", async () => {
    const small = { ...quick.States.Now, Output: "{% $length($states.input.filler) > 0 %}" };
    const reading = await run(define({ work: { StartAt: "Now", States: { Now: small } } }), sized(quota));
    expect(describeExecution(reading)).toMatchObject({ status: "SUCCEEDED", output: true });
    const { status, output } = describeExecution(await run(define({ work: quick }), sized(quota - 2)));
    expect([status, Buffer.byteLength(JSON.stringify(output))]).toEqual(["SUCCEEDED", quota - 2]);
    expect(token()).toBeUndefined();
  });

  it("whose output is larger fails, and its keeper lets the lock go", async () => {
    const execution = await run(define({ work: quick }), sized(quota));
    expect(describeExecution(execution)).toMatchObject({
      status: "FAILED",
      error: "States.DataLimitExceeded",
    });
    // No event tells it here: it looks every fifth beat.
    await clock.advance(6 * beatMs);
    expect(token()).toBeUndefined();
  });

  it("asks DynamoDB for nothing that it does not look at", () => {
    const sent = JSON.stringify(
      workflowDefinition(workflowTerms(minute, { whenHeld: "replace", once: true })),
    );
    expect(sent).not.toContain("ALL_NEW");
    expect(sent.match(/"Resource":"[^"]*getItem"/g)?.length).toBe(
      sent.match(/"ProjectionExpression":"[^"]*"/g)?.length,
    );
    for (const [, projection] of sent.matchAll(/"ProjectionExpression":"([^"]*)"/g)) {
      expect(projection).not.toContain(attributeNames.data);
    }
  });
});

describe("a workflow that runs once for each scheduled time", () => {
  const event = { key, scheduledTime: "2025-11-21T10:00:00Z" };

  it("refuses a time that lies ahead by more than a minute, and takes no lock: it would keep out all until then", async () => {
    const scheduledTime = new Date(clock.now() + 61_000).toISOString();
    const refused = describeExecution(await run(define({ once: true }), { key, scheduledTime }));
    expect(refused).toMatchObject({ status: "FAILED", error: "InvalidOptionsError" });
    expect(steps.lease(key)).toBeUndefined();
    const soon = { key, scheduledTime: new Date(clock.now() + 50_000).toISOString() };
    start(define({ once: true }), soon);
    await clock.advance(500);
    expect(steps.lease(key)).toMatchObject({ pk: key });
  });

  it("skips a time that is done, whoever did it, and runs the next", async () => {
    const definition = define({ once: true, work: quick });
    expect(describeExecution(await run(definition, event)).output).toEqual(event);
    const again = describeExecution(await run(definition, event));
    expect(again).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, key, reason: "done" } });
    const next = { key, scheduledTime: "2025-11-21T10:01:00Z" };
    expect(describeExecution(await run(definition, next)).output).toEqual(next);
    // The same form as the middleware's slots.
    expect(await other.tryAcquire(key, { slot: "2025-11-21T10:01:00.000Z" })).toBeUndefined();
  });

  it("refuses an input without a time by name", async () => {
    expect(describeExecution(await run(define({ once: true }), { key })).error).toBe("InvalidOptionsError");
  });
});

async function run(definition: string, input?: unknown): Promise<string> {
  const execution = start(definition, input);
  await clock.advance(500);
  return execution;
}
