// Workflows that hold permits of a semaphore, which clients share with them: what differs from a lock.

import { LeaseClient, type LeaseHandle, type UpdateRequest } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { Semaphore } from "@leasehold/client/semaphore";
import type { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { mostWorkflowPermits } from "../../packages/cdk/src/workflow/permit-seats.ts";
import type { WorkflowTerms } from "../../packages/cdk/src/workflow/workflow-terms.ts";
import { type SeatRecord, seatText } from "../../packages/client/src/primitives/seats/seat.ts";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import { adminOf } from "../support/admin.ts";
import {
  beatMs,
  clockSkewMs,
  failed,
  KeptWork,
  key,
  leaseDurationMs,
  retentionMs,
  stopped,
  waiting,
} from "../support/kept-work.ts";
import type { StepFunctions } from "../support/step-functions.ts";

const startLeaseMs = 60_000;

let kept: KeptWork;
let clock: ManualClock;
let steps: StepFunctions;
let client: LeaseClient;

const semaphore = (permits: number, of = client): Semaphore => new Semaphore(of, key, { permits });
const item = () => kept.seats();
const taken = (): unknown => item()?.permits;
const describeExecution = (arn: string) => kept.describe(arn);
const status = (arn: string): string => kept.status(arn);
const entered = (arn: string): string[] => kept.entered(arn);

/** Sets a text or a number of the semaphore's item by hand. */
function set(name: string, value: string | number): void {
  steps.store.updateNow({
    key: { pk: key, sk: "semaphore" },
    update: "SET #name = :value",
    condition: "attribute_exists(#name)",
    names: { "#name": name },
    values: { ":value": value },
    returnsItem: false,
  });
}

const define = (permits: number, more: Partial<WorkflowTerms> = {}): string =>
  kept.define({ ...more, permits });
const start = (machine: string): Promise<string> => kept.run(machine);

beforeEach(() => {
  kept = new KeptWork("permit");
  ({ clock, steps, client } = kept);
});

describe("a workflow with permits", () => {
  it("works beside as many others as there are permits, and is refused beyond", async () => {
    const machine = define(2);
    const [one, two, three] = [await start(machine), await start(machine), await start(machine)];
    expect([one, two].map(status)).toEqual(["RUNNING", "RUNNING"]);
    expect(describeExecution(three)).toMatchObject(
      failed(
        "LeaseUnavailableError",
        `too few of the 2 permits of the semaphore import are free, and the next to end is held by workflow:${one}`,
      ),
    );
    expect(taken()).toBe(2);
    await clock.advance(61_000);
    expect([one, two].map(status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
    expect(await semaphore(2).inspect()).toMatchObject({ held: [], free: 2 });
    expect(taken()).toBe(0);
    expect(status(await start(machine))).toBe("RUNNING");
  });

  it("puts the item's ttl off when it is near, and never brings it nearer", async () => {
    await start(define(1, { work: waiting(400_000), leaseDurationMs: 36_000_000 }));
    const first = Number(item()?.ttl);
    await clock.advance(36_000_000);
    expect(item()?.ttl).toBe(first);
    await clock.advance(200_000_000);
    const later = Number(item()?.ttl);
    expect(later).toBeGreaterThan(first);
    expect(later * 1_000).toBeLessThanOrEqual(clock.now() + 36_000_000 + retentionMs + 1_000);
    expect(later * 1_000).toBeGreaterThan(clock.now() + 0.75 * retentionMs);
  });
});

describe("the permit of a workflow that ends otherwise", () => {
  it("is let go by that event, and not another's, or one of the same execution in its cooldown", async () => {
    const executionArn = kept.startWork();
    const owner = `workflow:${executionArn}`;
    await semaphore(3).acquire();
    await (await semaphore(3).acquire({ owner, lockAtLeastForMs: leaseDurationMs })).release();
    await semaphore(3).acquire({ owner, leaseDurationMs: 60_000 });
    steps.machines.stop(executionArn);
    await clock.advance(0);
    expect((await semaphore(3).inspect()).held).toMatchObject([
      { owner: "holder" },
      { owner, inCooldown: true },
    ]);
  });

  it("when its holder was asked to stop, is renewed until the work could be stopped, and let go then", async () => {
    const execution = await start(define(1));
    const [lease] = (await semaphore(1).inspect()).held;
    steps.fail("sfn:stopExecution", 1_000, "Sfn.SfnException");
    await adminOf(client).requestRevocation(key, { sortKey: "semaphore", token: String(lease?.token) });
    await clock.advance(4 * leaseDurationMs);
    expect((await semaphore(1).inspect()).held[0]?.expiresAt).toBeGreaterThan(clock.now());
    expect(status(execution)).toBe("RUNNING");
    steps.heal();
    await clock.advance(2 * beatMs);
    expect(describeExecution(execution)).toMatchObject(stopped());
    expect(taken()).toBe(0);
  });

  it("when it was let go, and another's release came in between, does not have it stopped", async () => {
    const other = await semaphore(2).acquire({ heartbeat: true });
    const execution = await start(define(2, { work: waiting(62) }));
    await clock.advance(61_900);
    // The release lands, its answer comes late, and the keeper's beat lies in between.
    steps.answerLate("dynamodb:updateItem", 1, 1_500);
    await clock.advance(600);
    expect(taken()).toBe(1);
    await other.release();
    await clock.advance(2 * beatMs);
    expect(status(execution)).toBe("SUCCEEDED");
    expect(kept.keepers().map(({ status }) => status)).toEqual(["SUCCEEDED"]);
  });
});

describe("a grant", () => {
  it("that never landed is revoked, so that a late copy of it is refused", async () => {
    steps.fail("dynamodb:updateItem", 4);
    const execution = await start(define(2));
    await clock.advance(20_000);
    expect(status(execution)).toBe("FAILED");
    expect(entered(execution).slice(-2)).toEqual(["Leasehold_RevokeToken", "Leasehold_Failed"]);
    expect(item()).toMatchObject({ releasedToken: expect.any(String) });
    expect(taken()).toBeUndefined();
    expect((await semaphore(2).inspect()).free).toBe(2);
  });

  it("that lands just before its token is revoked is ended by another cancellation", async () => {
    const write = steps.store.updateNow.bind(steps.store);
    const sent: UpdateRequest[] = [];
    steps.store.updateNow = (request) => {
      sent.push(request);
      // Neither the grant nor its repetitions arrive in time. The first one does after the cancellation was refused.
      if (sent.length <= 4) throw new StatesError("DynamoDb.SdkClientException", "no answer");
      if (sent.length === 6) expect(write(sent[0] as UpdateRequest).applied).toBe(true);
      return write(request);
    };
    const execution = await start(define(2));
    await clock.advance(20_000);
    expect(entered(execution).slice(-2)).toEqual(["Leasehold_CancelLanded", "Leasehold_Failed"]);
    expect(taken()).toBe(0);
  });

  it("whose lease ended before its answer was known does no work, and leaves no permit taken", async () => {
    steps.loseAnswers("dynamodb:updateItem", 1);
    steps.answerLate("dynamodb:getItem", 1, startLeaseMs);
    const execution = await start(define(1));
    await clock.advance(startLeaseMs + 5_000);
    expect(describeExecution(execution)).toMatchObject(failed("LeaseLostError"));
    expect(entered(execution)).not.toContain("Minute");
    expect(taken()).toBe(0);
  });
});

describe("a semaphore", () => {
  it("that an operator has paused lets no workflow in, until it is resumed", async () => {
    const operator = new LeaseOperator(client, { by: "kim" });
    await operator.pause(key, { reason: "repair", forMs: 3_600_000 });
    const machine = define(3);
    const refused = await start(machine);
    expect(describeExecution(refused)).toMatchObject(failed("LeaseUnavailableError"));
    await operator.resume(key);
    expect(status(await start(machine))).toBe("RUNNING");
  });

  it("whose item another program has written is refused by name", async () => {
    await semaphore(1).acquire({ heartbeat: true });
    set("permits", 7);
    expect(describeExecution(await start(define(1)))).toMatchObject({ error: "LeaseItemError" });
  });

  it("that is larger than what Step Functions reads is refused by name", async () => {
    await semaphore(1).acquire({ heartbeat: true });
    steps.fail("dynamodb:getItem", 1, "States.DataLimitExceeded", "too large");
    const execution = await start(define(1));
    expect(describeExecution(execution)).toMatchObject({ error: "SemaphoreTooLargeError" });
    expect(entered(execution)).toContain("Leasehold_Cancel");
  });

  it("of as many workflows as there may be, with names as long as they can be is read at once", async () => {
    const machine = `m${"x".repeat(79)}`;
    const owner = (index: number): string =>
      `workflow:arn:aws-us-gov:states:us-gov-west-1:123456789012:execution:${machine}:${String(index).padStart(80, "0")}`;
    for (let index = 0; index < mostWorkflowPermits; index += 1)
      await semaphore(mostWorkflowPermits).acquire({ owner: owner(index), leaseDurationMs: 31_536_000 });
    const wire = Object.entries(item() ?? {}).map(([name, value]) => [
      name,
      typeof value === "number" ? { N: String(value) } : { S: value },
    ]);
    expect(JSON.stringify({ Item: Object.fromEntries(wire) }).length).toBeLessThan(256 * 1024);
    expect(describeExecution(await start(define(mostWorkflowPermits)))).toMatchObject({
      error: "LeaseUnavailableError",
    });
  });
});

describe("a keeper of a client's permits", () => {
  const keep = async (input: object): Promise<string> => {
    const keeper = kept.startKeeper(input);
    await clock.advance(0);
    return keeper;
  };

  it.each([{ reentrant: true }, { permits: 3 }, { data: { note: 'a, "b", [1,2]', list: [0.1, [2]] } }])(
    "until a time writes again what the seat holds, %j, and lets all of it go",
    async (options) => {
      const lease = await semaphore(4).acquire({ owner: 'a, "me", \\ [x]', ...options });
      const [before] = (await semaphore(4).inspect()).held;
      const keeper = await keep({ lease: lease.toJSON(), until: clock.now() + 60_000 });
      // A caller that has judged the earlier version must not pass.
      expect((await semaphore(4).inspect()).held[0]?.version).toBe((before?.version ?? 0) + 1);
      await clock.advance(30_000);
      const [after] = (await semaphore(4).inspect()).held;
      const { version, expiresAt } = after ?? {};
      expect(after).toEqual({ ...before, version, expiresAt });
      expect(version).toBeGreaterThan(before?.version ?? 0);
      expect(expiresAt).toBeGreaterThan(clock.now());
      await clock.advance(40_000);
      expect(status(keeper)).toBe("SUCCEEDED");
      expect(taken()).toBe(0);
      expect(Object.keys(item() ?? {}).filter((name) => /^[sfro]:/.test(name))).toEqual([]);
    },
  );

  it("that was let go, or broken, before it has begun ends, and renews nothing", async () => {
    const [released, broken] = [await semaphore(4).acquire(), await semaphore(4).acquire()];
    await adminOf(client).forceRelease(key, { sortKey: "semaphore", token: broken.token });
    await released.release();
    const until = clock.now() + 60_000;
    const ended = await keep({ lease: released.toJSON(), until });
    const lost = await keep({ lease: broken.toJSON(), until });
    expect(status(ended)).toBe("SUCCEEDED");
    expect(describeExecution(lost)).toMatchObject(failed("LeaseLostError"));
    expect(taken()).toBe(0);
  });

  it("says nothing of a clock of its own once it has renewed", async () => {
    const lease = await semaphore(1).acquire();
    const [shown] = (await semaphore(1).inspect()).held;
    set(`s:${lease.token}`, seatText({ ...(shown as SeatRecord), ownClock: true }, undefined));
    await keep({ lease: lease.toJSON(), until: clock.now() + 60_000 });
    expect((await semaphore(1).inspect()).held[0]).not.toHaveProperty("ownClock");
  });

  it("guards an execution that the lease names, and stops it when the lease is gone", async () => {
    const executionArn = kept.startWork();
    const lease = await semaphore(2).acquire({ owner: `workflow:${executionArn}`, permits: 2, data: "x" });
    await keep({ lease: lease.toJSON(), guarded: executionArn });
    await clock.advance(20 * beatMs);
    expect((await semaphore(2).inspect()).held).toMatchObject([{ seat: { permits: 2 }, data: "x" }]);
    await adminOf(client).forceRelease(key, { sortKey: "semaphore", token: lease.token });
    await clock.advance(beatMs + 1_000);
    expect(describeExecution(executionArn)).toMatchObject(stopped());
  });

  it.each([
    ["of another kind", (handle: object) => ({ ...handle, sortKey: "read-write" })],
    ["whose version has no room in a seat's text", (handle: object) => ({ ...handle, version: 1e10 })],
  ])("refuses a handle %s", async (_, change) => {
    const handle = change((await semaphore(1).acquire()).toJSON());
    const keeper = await keep({ lease: handle, until: clock.now() + 60_000 });
    expect(describeExecution(keeper)).toMatchObject({ error: "InvalidOptionsError" });
  });
});

describe("expired permits", () => {
  /** A client that is gone: nobody renews its leases. */
  const dead = async (permits: number, of = 5, more: object = {}) =>
    await semaphore(
      of,
      new LeaseClient({ store: steps.store, clock, owner: "dead", leaseDurationMs, ...more }),
    ).acquire({ permits });

  it("that are too few leave everything as it is", async () => {
    await dead(1);
    await semaphore(5).acquire({ permits: 4, heartbeat: true });
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const before = item();
    expect(status(await start(define(4)))).toBe("FAILED");
    expect(Object.keys(item() ?? {}).sort()).toEqual(Object.keys(before ?? {}).sort());
    expect(taken()).toBe(5);
  });

  it("go one after the other where one alone does not make room, with all of their permits", async () => {
    for (let index = 0; index < 2; index += 1) await dead(2);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const execution = await start(define(2));
    expect(status(execution)).toBe("RUNNING");
    expect(entered(execution).filter((name) => name === "Leasehold_ClearPermit")).toHaveLength(1);
    expect(taken()).toBe(1);
    expect((await semaphore(5).inspect()).held).toHaveLength(1);
  });

  it("go in the order of their ends, and no more of them than have to", async () => {
    const first = await dead(1);
    await clock.advance(1_000);
    const second = await dead(1);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(status(await start(define(2)))).toBe("RUNNING");
    const tokens = (await semaphore(2).inspect()).held.map(({ token }) => token);
    expect(tokens).toContain(second.token);
    expect(tokens).not.toContain(first.token);
  });

  it("make no room where another caller took a permit after the look", async () => {
    await dead(1);
    await semaphore(5).acquire({ heartbeat: true });
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    steps.answerLate("dynamodb:getItem", 1, 1_000);
    const execution = await start(define(2));
    await semaphore(5).acquire({ heartbeat: true });
    await clock.advance(1_000);
    expect(describeExecution(execution)).toMatchObject(failed("LeaseUnavailableError"));
    expect(taken()).toBe(3);
  });

  it("of a reentrant owner take its mark along", async () => {
    await semaphore(1).acquire({ owner: "dead", reentrant: true });
    expect(Object.keys(item() ?? {})).toContain("o:permit:dead");
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(status(await start(define(1)))).toBe("RUNNING");
    expect(Object.keys(item() ?? {})).not.toContain("o:permit:dead");
  });

  it.each([
    ["that alone makes room", 1, 1],
    ["that makes room together with another", 2, 2],
  ])("stay where a renewal came in between, of one %s", async (_, leases, permits) => {
    const [lease] = await Promise.all(Array.from({ length: leases }, () => dead(permits, leases * permits)));
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const machine = define(permits);
    steps.machines.start({ stateMachineArn: machine, input: { key } });
    // The look comes first, and then the renewal, by another process that adopted it.
    steps.answerLate("dynamodb:getItem", 1, 1_000);
    await clock.advance(0);
    await semaphore(1)
      .adopt(lease?.toJSON() as LeaseHandle)
      .renew();
    await clock.advance(1_000);
    const [execution] = steps.machines.executions(machine);
    expect(execution).toMatchObject(failed("LeaseUnavailableError"));
    const { held } = await semaphore(leases * permits).inspect();
    expect(held.map(({ token }) => token)).toContain(lease?.token);
  });

  it("whose expiry is of their holder's own clock are not judged by it", async () => {
    const lease = await dead(1, 1);
    const [shown] = (await semaphore(1).inspect()).held;
    set(`s:${lease.token}`, seatText({ ...(shown as SeatRecord), ownClock: true }, undefined));
    const [seat] = (await semaphore(1).inspect()).held;
    expect(seat?.ownClock).toBe(true);
    await clock.advance(10 * leaseDurationMs);
    expect(status(await start(define(1)))).toBe("FAILED");
  });
});
