/** How aborted, outdated and wrong calls must end, and what answers tell of the service's time. */
import assert from "node:assert/strict";
import { systemClock } from "../../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../../base/errors.ts";
import type { ServiceTime } from "../../base/service-clock.ts";
import type { CallOptions, LeaseStore } from "../../base/store.ts";
import { always, type CheckTable, type ConformanceCheck, defineCheck } from "./check.ts";
import { render, renderEntry } from "./write.ts";

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
    const set = { n: 1 };
    await assert.rejects(table.write("item", { set, insist: always }, call), LeaseError);
    const entry = renderEntry({ key: table.key("item"), set, insist: always });
    await assert.rejects(table.store.transact([entry], call), LeaseError);
    assert.equal(await table.item("item"), undefined);
  }),

  defineCheck(
    "calls",
    "a request that is wrong rejects with a LeaseError that has a code, and writes nothing",
    async (table) => {
      const wrong = {
        ...render({ key: table.key("item"), set: { n: 1 }, insist: always }),
        update: "SET #n = ",
      };
      await assert.rejects(table.store.update(wrong, table.call), isNamed);
      const action = { update: "SET #n = " };
      await assert.rejects(
        table.store.transact(
          [{ ...renderEntry({ key: table.key("item"), set: { n: 1 }, insist: always }), action }],
          table.call,
        ),
        isNamed,
      );
      assert.equal(await table.item("item"), undefined);
    },
  ),

  defineCheck(
    "calls",
    "a count of what is no number rejects with a LeaseError that has a code, and changes nothing",
    async (table) => {
      await table.put("item", { n: "text" });
      const countUp = { set: { n: { of: "n", from: 0, by: 1 } }, insist: always };
      await assert.rejects(table.write("item", countUp), isNamed);
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
  const write = { key, set: { n: 1 }, insist: always };
  const names = { "#pk": "pk" };
  const values = { ":pk": pk };
  return [
    ["update", () => store.update(render(write), call)],
    ["transact", () => store.transact([renderEntry(write)], call)],
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
