import { type Clock, LeaseClient } from "@leasehold/client";
import { cancel } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import type { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { fixedKey, workflowDefinition } from "../../packages/cdk/src/workflow/workflow-definition.ts";
import {
  beatMs,
  clockSkewMs,
  type Form,
  failed,
  forms,
  KeptWork,
  key,
  leaseDurationMs,
  minute,
  quick,
  stopped,
  waiting,
} from "../support/kept-work.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { type StepFunctions, type StepsWorld, startedBy, workflowTerms } from "../support/step-functions.ts";

let kept: KeptWork;
let clock: ManualClock;
let steps: StepFunctions;
let other: LeaseClient;

/** Makes a world in which nothing is told by events. */
function begin(form?: Form, world?: StepsWorld): void {
  kept = new KeptWork(form, world);
  ({ clock, steps } = kept);
  other = kept.clientOf("other");
  kept.deliver = () => {};
  kept.deliverKeepers = () => {};
}

function stopKeepers(): void {
  for (const keeper of kept.running()) steps.machines.stop(keeper);
}

type Handle = Parameters<LeaseClient["adopt"]>[0];

describe.each(forms)("a workflow that holds a %s", (form) => {
  beforeEach(() => begin(form));

  it("does its work under a lease that its keeper renews and a client can adopt, and releases it", async () => {
    const execution = await kept.run(kept.define());
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      if (second < 59) expect(await kept.of(other).tryAcquire()).toBeUndefined();
    }
    const { status, output } = kept.describe(execution);
    expect(status).toBe("SUCCEEDED");
    expect(output).toMatchObject({
      given: { key, orders: 7 },
      lease: { tableName: "leases", key, leaseDurationMs, fencingToken: expect.any(Number) },
    });
    const { lease } = output as { readonly lease: Handle };
    expect(kept.of(other).adopt(lease).fence().ExpressionAttributeValues).toEqual({
      ":leaseFence": { N: String(lease.fencingToken) },
    });
    expect((await kept.of(other).acquire()).fencingToken).toBe(lease.fencingToken + 1);
    await clock.advance(beatMs);
    // The console of Step Functions links the two by that member.
    expect(kept.keepers()).toMatchObject([
      { status: "SUCCEEDED", input: { guarded: execution, [startedBy]: execution } },
    ]);
  });

  it("costs 2 writes and 6 transitions, and its keeper's start 1 write and 10 transitions", async () => {
    const execution = await kept.run(kept.define({ work: quick }), 100);
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
    expect(kept.entered(execution)).toHaveLength(7);
    const states = kept.entered(String(kept.keepers()[0]?.executionArn));
    expect([states.length, states.at(-1)]).toEqual([10 + 1, "Pause1"]);
  });

  it("leaves its lease in its cooldown after short work", async () => {
    const machine = kept.define({ work: quick, lockAtLeastForMs: 5_000 });
    const execution = await kept.run(machine);
    expect(kept.status(execution)).toBe("SUCCEEDED");
    expect(kept.held()).toMatchObject({ owner: `workflow:${execution}`, expiresAt: clock.now() + 5_000 });
    await clock.advance(5_000 + clockSkewMs);
    expect(kept.status(await kept.run(machine))).toBe("FAILED");
    await clock.advance(1);
    expect(kept.status(await kept.run(machine))).toBe("SUCCEEDED");
  });

  it("fails with LeaseLostError when another holder has its lease before its work was done", async () => {
    const execution = await kept.run(kept.define(), 20_000);
    stopKeepers();
    await clock.advance(leaseDurationMs + 2_000);
    const thief = await kept.of(other).acquire({ leaseDurationMs: 120_000 });
    await clock.advance(60_000);
    expect(kept.describe(execution)).toMatchObject(failed("LeaseLostError"));
    expect(kept.token()).toBe(thief.token);
  });

  it("fails with LeaseLostError when its lease was broken before its work was done, and nothing told the work", async () => {
    const execution = await kept.run(kept.define({ work: waiting(2) }));
    await kept.breakLease();
    await clock.advance(2_000);
    expect(kept.describe(execution)).toMatchObject(failed("LeaseLostError"));
  });

  it("goes on when the grant landed and its answer was lost", async () => {
    steps.loseAnswers("dynamodb:updateItem", 1);
    const execution = await kept.run(kept.define(), 5_000);
    expect(kept.entered(execution)).toContain("Leasehold_SeeHolder");
    await clock.advance(65_000);
    expect(kept.status(execution)).toBe("SUCCEEDED");
    expect(kept.held()).not.toHaveProperty("token");
  });

  it("takes back a grant that may have landed when no answer comes at all", async () => {
    steps.loseAnswers("dynamodb:updateItem", 1);
    steps.fail("dynamodb:getItem", 4);
    const execution = await kept.run(kept.define(), 30_000);
    expect(kept.status(execution)).toBe("FAILED");
    expect(kept.held()).not.toHaveProperty("token");
  });

  it("does no work when its lease was broken before the answer of its acquisition was known", async () => {
    steps.loseAnswers("dynamodb:updateItem", 1);
    const execution = await kept.run(kept.define(form === "lock" ? { whenHeld: "wait" } : {}));
    await kept.breakLease();
    await clock.advance(8_000);
    expect(kept.describe(execution)).toMatchObject(failed("LeaseLostError"));
    expect(kept.entered(execution)).not.toContain("Minute");
    expect(kept.held()).not.toHaveProperty("token");
  });

  it("does no work while its keeper cannot prove the lease, lets it go and says where to look", async () => {
    steps.fail("dynamodb:getItem", 1_000);
    const execution = await kept.run(kept.define(), 20_000);
    expect(kept.describe(execution)).toMatchObject(
      failed("LeaseNotProvenError", /DynamoDb\.InternalServerErrorException/),
    );
    expect(kept.entered(execution)).not.toContain("Minute");
    expect(kept.held()).not.toHaveProperty("token");
  });

  it("hands a lease to its work that ends when the table says so, and has its own length from then on", async () => {
    const execution = await kept.run(kept.define({ leaseDurationMs: 3_000 }));
    const { expiresAt, version } = kept.held();
    expect(kept.held()).toMatchObject({ leaseDurationMs: 3_000, expiresAt: clock.now() + 3_000 });
    await clock.advance(60_000);
    expect(kept.describe(execution)).toMatchObject({
      output: { lease: { expiresAt, version, leaseDurationMs: 3_000 } },
    });
  });

  it("keeps its result when its release landed unseen, and another's release came in between", async () => {
    const execution = await kept.run(kept.define(), 59_900);
    steps.loseAnswers("dynamodb:updateItem", 1);
    await clock.advance(300);
    await (await kept.of(other).acquire()).release();
    await clock.advance(8_000);
    expect(kept.describe(execution)).toMatchObject({ status: "SUCCEEDED", output: { given: { key } } });
  });

  it("keeps its result when the release is not confirmed, and its keeper releases", async () => {
    const execution = await kept.run(kept.define(), 59_500);
    steps.fail("dynamodb:updateItem", 4);
    await clock.advance(30_000);
    expect(kept.status(execution)).toBe("SUCCEEDED");
    expect(kept.held()).not.toHaveProperty("token");
  });

  it("takes over from a holder whose lease is over, by more than the clocks may differ, with one more write", async () => {
    const dead = await kept.of(other).acquire();
    const machine = kept.define();
    await clock.advance(leaseDurationMs + clockSkewMs);
    expect(kept.describe(await kept.run(machine)).error).toBe("LeaseUnavailableError");
    await clock.advance(1);
    steps.calls.length = 0;
    expect(kept.status(await kept.run(machine))).toBe("RUNNING");
    const writes = ["dynamodb:updateItem", "dynamodb:getItem", "dynamodb:updateItem"];
    expect(steps.calls.slice(0, 3)).toEqual(writes);
    expect(kept.token()).not.toBe(dead.token);
  });

  it("that is to fail while another holds it says who", async () => {
    await kept.of(other).acquire();
    expect(kept.describe(await kept.run(kept.define()))).toMatchObject(
      failed("LeaseUnavailableError", /held by other$/),
    );
  });

  it("that is to skip while another holds it succeeds without working", async () => {
    await kept.of(other).acquire();
    const { status, output } = kept.describe(await kept.run(kept.define({ whenHeld: "skip" })));
    expect(status).toBe("SUCCEEDED");
    expect(output).toEqual({ skipped: true, key, reason: "held" });
  });
});

describe("a leased workflow", () => {
  beforeEach(() => begin());

  it("succeeds when its work has let the lock go itself, and another caller that has given up has left its mark", async () => {
    const execution = await kept.run(kept.define(), 20_000);
    const [keeper] = kept.keepers();
    const { lease } = (keeper?.input ?? {}) as { readonly lease: Handle };
    expect(await other.adopt(lease).release()).toBe(true);
    steps.store.updateNow(cancel({ key }, { token: "given up", now: clock.now(), retentionMs: 1 }).request());
    await clock.advance(60_000);
    expect(kept.status(execution)).toBe("SUCCEEDED");
  });

  it.each([
    [3_000, "LeaseNotProvenError", /States\.Timeout/],
    [9_000, "LeaseNotProvenError", /States\.Timeout/],
    [180_000, "KeeperNotReadyError", /see its execution [0-9a-f]{64}-0-0 of arn:aws:states:.*:keeper$/],
  ])(
    "does no work while its keeper of a lease of %i ms gets no answer, and says where to look",
    async (leaseDurationMs, error, cause) => {
      steps.hang("dynamodb:getItem", 20);
      const execution = await kept.run(kept.define({ leaseDurationMs }), 120_000);
      expect(kept.describe(execution)).toMatchObject(failed(error, cause));
      expect(kept.entered(execution)).not.toContain("Minute");
      expect(kept.token()).toBeUndefined();
    },
  );

  it("does no work when its keeper has died, and the keeper's answer comes after the end of the lease", async () => {
    const { machines } = steps;
    const send = machines.sendTaskSuccess.bind(machines);
    machines.sendTaskSuccess = (...answer) =>
      void clock.schedule(() => send(...answer), leaseDurationMs + 3_000);
    const execution = await kept.run(kept.define(), 500);
    stopKeepers();
    await clock.advance(leaseDurationMs + 2_000);
    const thief = await other.acquire(key, { leaseDurationMs: 120_000 });
    await clock.advance(2_000);
    expect(kept.describe(execution)).toMatchObject(failed("KeeperNotReadyError", /see its execution/));
    expect(kept.entered(execution)).not.toContain("Minute");
    expect(kept.token()).toBe(thief.token);
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
      steps.fail(action, 1_000, error, "User: x is not authorized to perform it");
      const execution = await kept.run(kept.define(), ms);
      expect(kept.describe(execution)).toMatchObject(
        failed("KeeperNotPermittedError", /is not authorized to perform it/),
      );
      expect(kept.keepers().length).toBeLessThan(2);
      expect(kept.token()).toBeUndefined();
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
      begin("lock", { transitionMs: () => stateMs });
      const execution = await kept.run(kept.define({ leaseDurationMs }));
      let isKept = true;
      for (let time = 0; kept.status(execution) === "RUNNING" && time < 300_000; time += 100) {
        await clock.advance(100);
        const entered = kept.entered(execution);
        const isAtWork = entered.includes("Minute") && !entered.includes("Leasehold_Release");
        if (isAtWork && kept.expiresAt() <= clock.now()) isKept = false;
      }
      expect(kept.status(execution)).toBe("SUCCEEDED");
      expect(isKept).toBe(true);
      expect(kept.token()).toBeUndefined();
    },
  );

  it("works with a second keeper when the answer to the start of the first was lost", async () => {
    steps.loseAnswers("sfn:startExecution.waitForTaskToken", 1);
    steps.hang("sfn:sendTaskSuccess", 1);
    const execution = await kept.run(kept.define());
    for (let beat = 0; beat < 22; beat += 1) {
      await clock.advance(beatMs);
      if (kept.status(execution) === "RUNNING") expect(kept.expiresAt()).toBeGreaterThan(clock.now());
    }
    expect(kept.status(execution)).toBe("SUCCEEDED");
    expect(kept.token()).toBeUndefined();
    await clock.advance(beatMs);
    expect(kept.keepers().map(({ status }) => status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
  });

  it("begins its work, once, when the first answer of its keeper did not arrive", async () => {
    steps.fail("sfn:sendTaskSuccess", 1, "Sfn.SfnException", "Rate exceeded");
    const execution = await kept.run(kept.define(), 65_000);
    expect(kept.status(execution)).toBe("SUCCEEDED");
    expect(kept.entered(execution).filter((name) => name === "Minute")).toHaveLength(1);
    await clock.advance(beatMs);
    expect(kept.keepers()).toMatchObject([{ status: "SUCCEEDED" }]);
  });

  it.each([
    ["no key", {}],
    ["an empty key", { key: "" }],
    ["a key that is a number", { key: 7 }],
    ["a key that is too long", { key: "k".repeat(2_049) }],
  ])("refuses an input with %s by name, and changes nothing", async (_, input) => {
    const execution = await kept.run(kept.define(), 0, input);
    expect(kept.describe(execution)).toMatchObject(failed("InvalidOptionsError"));
    expect(steps.calls).toEqual([]);
  });

  it("with a key of its own asks nothing of the input, and takes quotes as they are", async () => {
    const execution = await kept.run(kept.define({ key: fixedKey("it's \"\\ mine") }), 100, {});
    expect(steps.lease("it's \"\\ mine")?.token).toBeDefined();
    expect(kept.status(execution)).toBe("RUNNING");
  });
});

describe("a workflow that is to wait while another holds the lock", () => {
  beforeEach(() => begin());

  it("for weeks is woken all the same", async () => {
    const day = 86_400_000;
    const lease = await other.acquire(key, { leaseDurationMs: 30 * day });
    const execution = await kept.run(kept.define({ whenHeld: "wait", waitMs: 60 * day }), 10 * day);
    steps.store.collectGarbage(clock.now());
    await lease.release();
    await steps.wake(key);
    await clock.advance(65_000);
    expect(kept.status(execution)).toBe("SUCCEEDED");
  });

  it("makes no request until it is woken, then does its work", async () => {
    const lease = await other.acquire(key, { leaseDurationMs: 200_000 });
    const execution = await kept.run(kept.define({ whenHeld: "wait" }), 1_000);
    steps.calls.length = 0;
    await clock.advance(150_000);
    expect(steps.calls).toEqual([]);
    await lease.release();
    await steps.wake(key);
    await clock.advance(100);
    expect(kept.token()).toBeDefined();
    await clock.advance(61_000);
    expect(kept.status(execution)).toBe("SUCCEEDED");
  });

  it("tries by itself when the holder's lease is over and nobody woke it", async () => {
    await other.acquire(key);
    await kept.run(kept.define({ whenHeld: "wait" }), leaseDurationMs + 3_000);
    expect(kept.held().owner).toMatch(/^workflow:/);
  });

  it("looks less and less often at a holder that stays alive, every five minutes at last", async () => {
    const lease = await other.acquire(key, { heartbeat: true });
    const execution = await kept.run(kept.define({ whenHeld: "wait", waitMs: 36_000_000 }), 3_600_000);
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
    "watches a lease whose expiry is of its holder's own clock for all of its duration; with a heartbeat: %s",
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
      await kept.run(kept.define({ whenHeld: "wait" }));
      const isHeld = (): boolean => kept.held().owner === "untold";
      for (let time = 0; isHeld() && time < 10 * leaseDurationMs; time += 100) await clock.advance(100);
      expect([isHeld(), lease.held]).toEqual([heartbeat, heartbeat]);
      await lease.release();
    },
  );

  it("does not park on a lock that was let go in the meantime", async () => {
    const lease = await other.acquire(key);
    const seeHolder = steps.store.peek.bind(steps.store);
    let isReleased = false;
    steps.store.peek = (itemKey) => {
      const item = seeHolder(itemKey);
      // The release falls between the look and the parking.
      if (!isReleased && item?.token === lease.token) {
        isReleased = true;
        void lease.release();
      }
      return item;
    };
    await kept.run(kept.define({ whenHeld: "wait" }), 1_000);
    expect(kept.held().owner).toMatch(/^workflow:/);
  });

  it("gives up when its time is over, and says so by name", async () => {
    const lease = await other.acquire(key, { heartbeat: true });
    const execution = await kept.run(kept.define({ whenHeld: "wait", waitMs: 30_000 }), 40_000);
    expect(kept.describe(execution)).toMatchObject(failed("LeaseUnavailableError"));
    await lease.release();
  });

  it("or to replace it asks it to stop, and takes the lock when it has let go", async () => {
    const machine = kept.define({ whenHeld: "replace" });
    const first = await kept.run(machine, 10_000);
    const second = await kept.run(machine, 100);
    expect(kept.held().revocation).toMatch(/^replaced by workflow:/);
    await clock.advance(beatMs);
    expect(kept.describe(first)).toMatchObject(stopped());
    await steps.wake(key);
    await clock.advance(61_000);
    expect(kept.status(second)).toBe("SUCCEEDED");
  });
});

describe("with data at Step Functions' and DynamoDB's limits, a workflow", () => {
  beforeEach(() => begin());

  const quota = 256 * 1024;
  const sized = (bytes: number): { key: string; filler: string } => {
    const empty = { key, filler: "" };
    return { key, filler: "x".repeat(bytes - Buffer.byteLength(JSON.stringify(empty))) };
  };

  it("takes an input of 256 KiB, and gives an output of that less the 2 bytes of the list that it comes in", async () => {
    const small = { ...quick.States.Now, Output: "{% $length($states.input.filler) > 0 %}" };
    const reads = kept.define({ work: { StartAt: "Now", States: { Now: small } } });
    const reading = await kept.run(reads, 0, sized(quota));
    expect(kept.describe(reading)).toMatchObject({ status: "SUCCEEDED", output: true });
    const giving = await kept.run(kept.define({ work: quick }), 0, sized(quota - 2));
    const { status, output } = kept.describe(giving);
    expect([status, Buffer.byteLength(JSON.stringify(output))]).toEqual(["SUCCEEDED", quota - 2]);
    expect(kept.token()).toBeUndefined();
  });

  it("whose output is larger fails, and its keeper lets the lock go", async () => {
    const execution = await kept.run(kept.define({ work: quick }), 0, sized(quota));
    expect(kept.describe(execution)).toMatchObject(failed("States.DataLimitExceeded"));
    // No event tells it here: it looks every fifth beat.
    await clock.advance(6 * beatMs);
    expect(kept.token()).toBeUndefined();
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
  beforeEach(() => begin());

  it.each([
    ["a time that lies ahead by more than a minute, which would keep out all until then", 61_000],
    ["no time", undefined],
  ])("refuses an input with %s, and takes no lock", async (_, aheadMs) => {
    const scheduledTime = aheadMs === undefined ? undefined : new Date(clock.now() + aheadMs).toISOString();
    const refused = await kept.run(kept.define({ once: true }), 0, { key, scheduledTime });
    expect(kept.describe(refused)).toMatchObject(failed("InvalidOptionsError"));
    expect(steps.lease(key)).toBeUndefined();
  });

  it("skips a time that is done, whoever did it, and runs the next, also 50 s before its time", async () => {
    const machine = kept.define({ once: true, work: quick });
    const done = { key, scheduledTime: "2025-11-21T10:00:00Z" };
    expect(kept.describe(await kept.run(machine, 0, done)).output).toEqual(done);
    const again = kept.describe(await kept.run(machine, 0, done));
    expect(again).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, key, reason: "done" } });
    const slot = new Date(clock.now() + 50_000).toISOString();
    const next = { key, scheduledTime: slot.replace("Z", "+00:00") };
    expect(kept.describe(await kept.run(machine, 0, next)).output).toEqual(next);
    // The same form as the middleware's slots.
    expect(await other.tryAcquire(key, { slot })).toBeUndefined();
  });
});
