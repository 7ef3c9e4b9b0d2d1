import { InvalidOptionsError, LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  acquireLease,
  type LeaseService,
  releaseLease,
  renewLease,
} from "../../functions/leases/lease-service.ts";
import { answering } from "../../functions/support/answers.ts";
import { KeyNotAllowedError } from "../../functions/support/input.ts";
import { unlessHandedOn } from "../../functions/support/leases.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const plenty = 60_000;

let clock: ManualClock;
let store: ScriptedStore;
let service: LeaseService;

function client(): LeaseClient {
  return new LeaseClient({ store, clock, owner: "the function" });
}

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  service = { leases: client(), forgetful: client, keyPrefix: "jobs/" };
});

describe("the lease functions", () => {
  test("a lease is acquired, renewed and released by three processes that share nothing but its JSON", async () => {
    const overTheWire = <T>(value: T): T => JSON.parse(JSON.stringify(value));
    const acquired = overTheWire(await acquireLease(service, { key: "jobs/a", owner: "A" }, plenty));
    expect(acquired).toMatchObject({ key: "jobs/a", owner: "A", leaseDurationMs: 30_000 });
    await clock.advance(10_000);

    const elsewhere: LeaseService = { ...service, leases: client() };
    const renewed = overTheWire(await renewLease(elsewhere, { lease: acquired }));
    expect(renewed.expiresAt).toBe(acquired.expiresAt + 10_000);
    expect(renewed.token).toBe(acquired.token);

    const third: LeaseService = { ...service, leases: client() };
    expect(await releaseLease(third, { lease: renewed })).toEqual({ released: true });
    expect(await releaseLease(service, { lease: acquired })).toEqual({ released: true });
    expect(await client().inspect("jobs/a")).toBeUndefined();
  });

  test("an old handle renews as long as nobody took the lock, and is refused by name once somebody did", async () => {
    const acquired = await acquireLease(service, { key: "jobs/a" }, plenty);
    await clock.advance(40_000);
    const renewed = await renewLease(service, { lease: acquired });
    expect(renewed.expiresAt).toBe(clock.now() + 30_000);

    await clock.advance(40_000);
    const later = await acquireLease(service, { key: "jobs/a", owner: "B" }, plenty);
    expect(later.fencingToken).toBeGreaterThan(acquired.fencingToken);
    await expect(renewLease(service, { lease: renewed })).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await releaseLease(service, { lease: renewed })).toEqual({ released: false });
    expect(await client().inspect("jobs/a")).toMatchObject({ owner: "B" });
  });

  test("no timer is left behind when the answer is there", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      await acquireLease(service, { key: "jobs/a", owner: "A" }, plenty);
      await acquireLease(service, { key: "jobs/a", owner: "B" }, plenty).catch(() => undefined);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("a wait ends while the invocation still has time to say so", async () => {
    await acquireLease(service, { key: "jobs/a", leaseDurationMs: 600_000 }, plenty);
    const startedAt = clock.monotonic();
    let endedAt: number | undefined;
    const waiting = acquireLease(service, { key: "jobs/a", waitMs: 300_000 }, 10_000).catch(
      (error: unknown) => {
        endedAt = clock.monotonic();
        return error;
      },
    );
    await clock.advance(8_000);
    expect(endedAt).toBeGreaterThanOrEqual(startedAt + 5_000);
    expect(endedAt).toBeLessThanOrEqual(startedAt + 7_500);
    expect(await waiting).toBeInstanceOf(LeaseUnavailableError);
  });

  test("an invocation whose time is nearly over still tries once", async () => {
    expect(await acquireLease(service, { key: "jobs/a", waitMs: 5_000 }, 100)).toMatchObject({
      key: "jobs/a",
    });
  });

  test("a service that hangs is reported by name before Lambda ends the invocation", async () => {
    store.next("hangs");
    await expect(acquireLease(service, { key: "jobs/a" }, 520)).rejects.toMatchObject({
      code: "LEASE_NO_ANSWER",
    });
  });

  test("a caller that is repeated gets in again under its own name, from whichever environment answers", async () => {
    const call = { key: "jobs/a", owner: "execution-1", reentrant: true };
    const first = await acquireLease(service, call, plenty);
    const second = await acquireLease({ ...service, leases: client() }, call, plenty);
    expect(second.token).not.toBe(first.token);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await expect(acquireLease(service, { ...call, owner: "execution-2" }, plenty)).rejects.toMatchObject({
      holder: "execution-1",
    });
  });

  test("a caller that comes again after its release elsewhere gets a lease that is held", async () => {
    const call = { key: "jobs/a", owner: "execution-1", reentrant: true };
    const first = await acquireLease(service, call, plenty);
    await releaseLease({ ...service, leases: client() }, { lease: first });
    const second = await acquireLease(service, call, plenty);
    expect(await client().inspect("jobs/a")).toMatchObject({ token: second.token });
  });

  test("a slot that was completed by the release function is refused by the acquire function", async () => {
    const call = { key: "jobs/a", slot: "2026-03-01T10:00:00Z" };
    const lease = await acquireLease(service, call, plenty);
    expect(await releaseLease(service, { lease, completed: true })).toEqual({ released: true });
    await expect(acquireLease(service, call, plenty)).rejects.toMatchObject({ code: "LEASE_SLOT_DONE" });
    const next = { ...call, slot: "2026-03-01T10:01:00Z" };
    expect(await acquireLease(service, next, plenty)).toMatchObject({ slot: next.slot });
  });

  const handle = {
    tableName: "leases-in-memory",
    key: "jobs/a",
    owner: "A",
    token: "t",
    version: 1,
    fencingToken: 1,
    acquiredAt: 0,
    expiresAt: 1,
    leaseDurationMs: 1,
  };
  const functions = {
    acquire: (input: unknown): Promise<unknown> => acquireLease(service, input, plenty),
    renew: (input: unknown): Promise<unknown> => renewLease(service, input),
    release: (input: unknown): Promise<unknown> => releaseLease(service, input),
  };
  test.each<[keyof typeof functions, string, unknown]>([
    ["acquire", "nothing", undefined],
    ["acquire", "a text", "jobs/a"],
    ["acquire", "a list", ["jobs/a"]],
    ["acquire", "without a key", {}],
    ["acquire", "a key that is a number", { key: 7 }],
    ["acquire", "with an unknown field", { key: "jobs/a", ttl: 1 }],
    ["acquire", "with a heartbeat", { key: "jobs/a", heartbeat: true }],
    ["acquire", "with a waitMs in text", { key: "jobs/a", waitMs: "5" }],
    ["acquire", "with an endless waitMs", { key: "jobs/a", waitMs: 1e99 }],
    ["acquire", "a key that is too long", { key: `jobs/${"x".repeat(2048)}` }],
    ["acquire", "with a negative duration", { key: "jobs/a", leaseDurationMs: -1 }],
    ["acquire", "with a slot that does not sort", { key: "jobs/a", slot: "é" }],
    ["acquire", "reentrantly as nobody", { key: "jobs/a", reentrant: true }],
    ["renew", "nothing", null],
    ["renew", "without a lease", {}],
    ["renew", "a bare handle", handle],
    ["renew", "another table's lease", { lease: { ...handle, tableName: "other" } }],
    ["renew", "a lease without a token", { lease: { ...handle, token: undefined } }],
    ["renew", "a lease with a token that is no text", { lease: { ...handle, token: 1 } }],
    ["release", "a lease with a version that is no number", { lease: { ...handle, version: "1" } }],
    ["release", "with a completed that is no flag", { lease: handle, completed: 1 }],
    ["release", "a list", { lease: [handle] }],
    ["release", "a text for a lease", { lease: "{}" }],
  ])("refuses to %s %s, and sends nothing", async (name, _what, input) => {
    await expect(functions[name](input)).rejects.toBeInstanceOf(InvalidOptionsError);
    expect(store.calls).toEqual([]);
  });

  test.each<[keyof typeof functions, unknown]>([
    ["acquire", { key: "payroll" }],
    ["renew", { lease: { ...handle, key: "payroll" } }],
    ["release", { lease: { ...handle, key: "payroll" } }],
  ])("refuses to %s a key outside its prefix, and sends nothing", async (name, input) => {
    const refusal = functions[name](input);
    await expect(refusal).rejects.toBeInstanceOf(KeyNotAllowedError);
    await expect(refusal).rejects.toThrow(/"payroll".*start with "jobs\/"/);
    expect(store.calls).toEqual([]);
  });

  test.each(["", "jobs"])("refuses the key %j, which only resembles its prefix", async (key) => {
    await expect(acquireLease(service, { key }, plenty)).rejects.toBeInstanceOf(KeyNotAllowedError);
  });
});

describe("what a caller in another language sees", () => {
  const context = { getRemainingTimeInMillis: () => plenty };

  test("the error's name, and after its message a line of JSON", async () => {
    await acquireLease(service, { key: "jobs/a", owner: "A" }, plenty);
    const handler = answering((event) => acquireLease(service, event, plenty));
    const error = await handler({ key: "jobs/a" }, context).then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );
    expect(error?.name).toBe("LeaseUnavailableError");
    const [text, json = ""] = (error?.message ?? "").split("\n");
    expect(text).toContain('the lock "jobs/a" is held by "A"');
    expect(JSON.parse(json)).toMatchObject({
      code: "LEASE_UNAVAILABLE",
      key: "jobs/a",
      holder: "A",
      inCooldown: false,
    });
  });

  test.each([
    ["KeyNotAllowedError", { key: "payroll" }, { key: "payroll" }],
    [
      "InvalidOptionsError",
      { key: "jobs/a", waitMs: -1 },
      { code: "LEASE_INVALID_OPTIONS", option: "waitMs" },
    ],
    ["InvalidOptionsError", "x".repeat(5000), { option: "event" }],
  ])("%s has its fields, and not the value that was refused", async (name, event, fields) => {
    const handler = answering((input) => acquireLease(service, input, plenty));
    const error = (await handler(event, context).catch((thrown: unknown) => thrown)) as Error;
    expect(error.name).toBe(name);
    const shown = JSON.parse(error.message.split("\n")[1] ?? "");
    expect(shown).toMatchObject(fields);
    expect(shown).not.toHaveProperty("value");
    expect(error.message.length).toBeLessThan(1000);
  });

  test("errors that are not about leases stay as they are", async () => {
    const error = new TypeError("something else");
    const handler = answering(() => Promise.reject(error));
    await expect(handler({}, context)).rejects.toBe(error);
  });

  test("a lease that was handed on and renewed elsewhere is not counted as lost", async () => {
    const heard: string[] = [];
    const onEvent = unlessHandedOn((event) => heard.push(event.type));
    const leases = new LeaseClient({ store, clock, onEvent });
    const handle = await acquireLease({ ...service, leases }, { key: "jobs/a" }, plenty);
    await renewLease(service, { lease: handle });
    await clock.advance(31_000);
    expect(heard).toEqual(["acquired"]);
  });
});
