/** Writes that travel together end each by itself, and none of them is lost or sent twice. */
import { LeaseServiceError, type UpdateResult } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import { type CallBudget, TimedCall } from "../../packages/client/src/base/timed-call.ts";
import { RequestGate } from "../../packages/client/src/core/request-gate.ts";
import { UpdateBatch } from "../../packages/client/src/core/together.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { setting } from "../support/recomposed.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let serviceClock: ServiceClock;
let store: ScriptedStore;
let batch: UpdateBatch;

beforeEach(() => {
  clock = new ManualClock();
  serviceClock = new ServiceClock(clock, false, () => undefined);
  store = new ScriptedStore();
  batch = newBatch();
});

const newBatch = (): UpdateBatch => new UpdateBatch({ store, gate: new RequestGate(clock) }, 0);
const within = (budget: CallBudget = {}): TimedCall => new TimedCall(serviceClock, budget);
const write = (pk: string, value = 1): Write =>
  setting({ pk, sk: "lease" }, { value }).and({ when: "#value <> :value" });
/** Each request with the keys that it writes. */
const sent = (): string[] =>
  store.calls.map(({ method, requests }) => `${method} ${requests.map(({ key }) => key.pk).join(" ")}`);
/** What a write resolves to, or what it rejects with as `failed`. */
const outcomeOf = (call: Promise<UpdateResult>): Promise<unknown> =>
  call.catch((failed: unknown) => ({ failed }));

describe("writes of a batch", () => {
  it("travel together, and each has its own result", async () => {
    store.table.updateNow({ ...request("b"), condition: "attribute_not_exists(#value)" });
    const results = ["a", "b", "c"].map((pk) => batch.update(write(pk), within()));
    expect(sent()).toEqual([]);
    await batch.send();
    expect(sent()).toEqual(["updateMany a b c"]);
    expect((await Promise.all(results)).map(({ applied }) => applied)).toEqual([true, false, true]);
  });

  it("are no batch where there is one of them, and nothing where there is none", async () => {
    await batch.send();
    expect(sent()).toEqual([]);
    batch = newBatch();
    const result = batch.update(write("a"), within());
    await batch.send();
    expect(sent()).toEqual(["update a"]);
    expect((await result).applied).toBe(true);
  });

  it("are sent alone where they are the second of their item, or come too late", async () => {
    const first = batch.update(write("a"), within());
    const second = batch.update(write("a", 2), within());
    await settled();
    expect(sent()).toEqual(["update a"]);
    await batch.send();
    const late = batch.update(write("b"), within());
    await settled();
    expect(sent()).toEqual(["update a", "update a", "update b"]);
    expect(await Promise.all([first, second, late])).toMatchObject([{}, {}, { applied: true }]);
  });

  it("tell the service's time with their one answer", async () => {
    store.time = () => ({ earliest: 5_000, latest: 6_000 });
    void batch.update(write("a"), within());
    void batch.update(write("b"), within());
    expect(serviceClock.earliest()).toBeUndefined();
    await batch.send();
    expect(serviceClock.earliest()).toBe(5_000);
  });
});

const request = (pk: string) => ({
  ...{ key: { pk, sk: "lease" }, update: "SET #value = :value", names: { "#value": "value" } },
  ...{ values: { ":value": 1 }, returnsItem: false },
});

describe("a batch that fails", () => {
  const both = () => ["a", "b"].map((pk) => outcomeOf(batch.update(write(pk), within())));

  it("because it was rejected is sent again, each write alone, for one of them may be at fault", async () => {
    store.next("rejected");
    const outcomes = both();
    await batch.send();
    expect(await Promise.all(outcomes)).toMatchObject([{ applied: true }, { applied: true }]);
    expect(sent()).toEqual(["updateMany a b", "update a", "update b"]);
  });

  it("in a write alone by a store that throws at once is that write's failure", async () => {
    const mistake = new TypeError("no such thing");
    store.updateMany = async () => [undefined, undefined];
    store.update = () => {
      throw mistake;
    };
    const outcomes = both();
    await batch.send();
    expect(await Promise.all(outcomes)).toEqual([{ failed: mistake }, { failed: mistake }]);
  });

  it("in one write alone repeats that one", async () => {
    const refused = new LeaseServiceError("LEASE_REQUEST_REJECTED", "no");
    store.updateMany = async () => [undefined, refused];
    const outcomes = both();
    await batch.send();
    expect(await Promise.all(outcomes)).toMatchObject([{ applied: true }, { applied: true }]);
    expect(sent()).toEqual(["update a", "update b"]);
  });
});

describe("a write that is not awaited any longer", () => {
  it("leaves the others in the batch, and is not sent again", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const signals: AbortSignal[] = [];
    const refused = new LeaseServiceError("LEASE_REQUEST_REJECTED", "no");
    store.updateMany = async (_, { signal }) => {
      signals.push(signal);
      await promise;
      return [refused, refused];
    };
    const caller = new AbortController();
    const left = outcomeOf(batch.update(write("a"), within({ signal: caller.signal })));
    const other = outcomeOf(batch.update(write("b"), within()));
    const sending = batch.send();
    const reason = new Error("enough");
    caller.abort(reason);
    expect(await left).toMatchObject({
      failed: { code: "LEASE_NO_ANSWER", cause: reason, message: expect.stringContaining("enough") },
    });
    expect(signals[0]?.aborted).toBe(false);
    resolve();
    await sending;
    expect(await other).toMatchObject({ applied: true });
    expect(sent()).toEqual(["update b"]);
  });

  it("is current only as long as every one that still waits is", async () => {
    let isCurrent: (() => boolean) | undefined;
    store.updateMany = async (_, call) => {
      ({ isCurrent } = call);
      return new Promise(() => undefined);
    };
    const caller = new AbortController();
    void outcomeOf(batch.update(write("a"), within({ withinMs: 500, signal: caller.signal })));
    void outcomeOf(batch.update(write("b"), within({ withinMs: 2_000 })));
    void batch.send();
    expect(isCurrent?.()).toBe(true);
    clock.freeze(501);
    expect(isCurrent?.()).toBe(false);
    caller.abort();
    expect(isCurrent?.()).toBe(true);
    clock.freeze(1_500);
    expect(isCurrent?.()).toBe(false);
  });
});
