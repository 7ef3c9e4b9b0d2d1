/** How aborted, outdated and wrong calls must end, and what answers tell of the service's time. */
import assert from "node:assert/strict";
import { systemClock } from "../../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../../base/errors.ts";
import type { ServiceTime } from "../../base/service-clock.ts";
import type { CallOptions, LeaseStore } from "../../base/store.ts";
import { type CheckTable, type ConformanceCheck, defineCheck } from "./check.ts";

/** An aborted call ends within this time. */
const promptMs = 2_000;
/** A store tells the service's time at least this precisely. */
const widestMs = 5_000;
/** The hosts of a service may differ by this much. */
const hostsDifferMs = 2_000;

export const callChecks: readonly ConformanceCheck[] = [
  defineCheck(
    "calls",
    "a call whose signal has aborted rejects with a LeaseServiceError, and writes nothing",
    async (table) => {
      const call: CallOptions = { signal: AbortSignal.abort(new Error("cut off")), isCurrent: () => true };
      for (const [name, attempt] of attemptsOf(table, call)) {
        await assert.rejects(attempt(), isCutOff, `${name} is cut off`);
      }
      assert.equal(await table.item("item"), undefined);
    },
  ),

  defineCheck(
    "calls",
    "a call that is cut off under way ends at once, with a LeaseServiceError or its result",
    async (table) => {
      for (const [name] of attemptsOf(table, table.call)) {
        const controller = new AbortController();
        const call: CallOptions = { signal: controller.signal, isCurrent: () => true };
        const attempt = attemptsOf(table, call).find(([other]) => other === name)?.[1];
        const ending = attempt?.().catch((error: unknown) => {
          assert.ok(isCutOff(error), `${name} rejects with a LeaseServiceError`);
        });
        const startedAt = systemClock.monotonic();
        controller.abort(new Error("cut off"));
        await ending;
        const tookMs = systemClock.monotonic() - startedAt;
        assert.ok(tookMs < promptMs, `${name} took ${Math.round(tookMs)} ms to end`);
      }
    },
  ),

  defineCheck("calls", "a request that has become too old is not sent", async (table) => {
    const call: CallOptions = { signal: new AbortController().signal, isCurrent: () => false };
    const write = table.writeOf("item", { set: "#n = 1" });
    await assert.rejects(table.store.update(write.request(), call), LeaseError);
    await assert.rejects(table.store.transact([write.entry()], call), LeaseError);
    assert.equal(await table.item("item"), undefined);
  }),

  defineCheck(
    "calls",
    "a request that is wrong rejects with a LeaseError that has a code, and writes nothing",
    async (table) => {
      const write = table.writeOf("item", { set: "#n = 1" });
      const wrong = { update: "SET #n = " };
      await assert.rejects(table.store.update({ ...write.request(), ...wrong }, table.call), isNamed);
      const entry = { ...write.entry(), action: wrong };
      await assert.rejects(table.store.transact([entry], table.call), isNamed);
      assert.equal(await table.item("item"), undefined);
    },
  ),

  defineCheck(
    "calls",
    "a count of what is no number rejects with a LeaseError that has a code, and changes nothing",
    async (table) => {
      await table.put("item", { n: "text" });
      const countUp = table.write("item", { set: "#n = if_not_exists(#n, 0) + 1" });
      await assert.rejects(countUp, isNamed);
      assert.deepEqual(await table.contents("item"), { n: "text" });
    },
  ),

  defineCheck("calls", "answers tell the service's time, and agree with each other", async (table) => {
    const told: { readonly time: ServiceTime; readonly sentAt: number; readonly arrivedAt: number }[] = [];
    const call: CallOptions = {
      ...table.call,
      timed: () => {
        const sentAt = systemClock.monotonic();
        return (time) => {
          if (time !== undefined) told.push({ time, sentAt, arrivedAt: systemClock.monotonic() });
        };
      },
    };
    for (const [, attempt] of attemptsOf(table, call)) await attempt();
    const [first] = told;
    if (first === undefined) return "its answers tell no time: expired leases are judged by watching them";
    for (const { time, sentAt, arrivedAt } of told) {
      assert.ok(time.earliest <= time.latest, "the earliest time is not after the latest");
      assert.ok(time.latest - time.earliest <= widestMs, "a time is told to within some seconds");
      const [least, most] = [sentAt - first.arrivedAt, arrivedAt - first.sentAt];
      assert.ok(time.latest - first.time.earliest >= least - hostsDifferMs, "time does not run backwards");
      assert.ok(time.earliest - first.time.latest <= most + hostsDifferMs, "time does not jump");
    }
    return undefined;
  }),
];

/** A call of each method, on an item of the check. */
function attemptsOf(
  table: CheckTable,
  call: CallOptions,
): readonly (readonly [keyof LeaseStore, () => Promise<unknown>])[] {
  const { store, pk } = table;
  const key = table.key("item");
  const write = table.writeOf("item", { set: "#n = 1" });
  const names = { "#pk": "pk" };
  const values = { ":pk": pk };
  return [
    ["update", () => store.update(write.request(), call)],
    ["transact", () => store.transact([write.entry()], call)],
    ["get", () => store.get({ key, consistent: true }, call)],
    ["query", () => store.query({ keyCondition: "#pk = :pk", names, values, consistent: true }, call)],
    ["scan", () => store.scan({ filter: "#pk = :pk", names, values }, call)],
  ];
}

/** A denied call may be refused as denied before it notices its signal. */
function isCutOff(error: unknown): boolean {
  const isDenied = error instanceof LeaseError && error.code === "LEASE_ACCESS_DENIED";
  return error instanceof LeaseServiceError || isDenied;
}

function isNamed(error: unknown): boolean {
  assert.ok(error instanceof LeaseError, `it rejects with a LeaseError, not with ${String(error)}`);
  assert.equal(typeof error.code, "string", "it has a code");
  return true;
}
