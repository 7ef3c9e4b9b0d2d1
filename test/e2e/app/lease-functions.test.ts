import type { LeaseHandle } from "@leasehold/client";
import type { InvokeResult } from "@leasehold/local";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { leaseTable, startTestApp, type TestApp } from "../../support/app.ts";

let it: TestApp;
let keys = 0;

beforeAll(async () => {
  it = await startTestApp();
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

type LeaseFunction = "Acquire" | "Renew" | "Release";

/** A key that these functions may touch, and that no other test uses. */
function newKey(): string {
  keys += 1;
  return `shared/lock-${keys}`;
}

function invoke(name: LeaseFunction, event: unknown): Promise<InvokeResult> {
  return it.app.invoke(`LeaseFunctions/${name}`, event);
}

/** The answer of a function that has to succeed. */
async function answer<T>(name: LeaseFunction, event: unknown): Promise<T> {
  const { payload, functionError } = await invoke(name, event);
  expect(functionError, JSON.stringify(payload)).toBeUndefined();
  return payload as T;
}

/** What a state machine sees of a function's failure: the error's name, and its fields on the message's last line. */
async function failure(name: LeaseFunction, event: unknown): Promise<{ errorType: string; fields: object }> {
  const { payload, functionError } = await invoke(name, event);
  expect(functionError, JSON.stringify(payload)).toBe("Unhandled");
  const { errorType, errorMessage } = payload as { errorType: string; errorMessage: string };
  return { errorType, fields: JSON.parse(errorMessage.split("\n").at(-1) ?? "") as object };
}

describe("a caller without a client", () => {
  test("acquires, renews and releases a lock, handing the lease from one function to the next", async () => {
    const key = newKey();
    const event = { key, owner: "a container", leaseDurationMs: 30_000, data: { task: 7 } };
    const acquired = await answer<LeaseHandle>("Acquire", event);
    expect(acquired).toMatchObject({ key, owner: "a container", tableName: it.app.tableName(leaseTable) });
    expect(await it.leases.inspect(key)).toMatchObject({ token: acquired.token, data: { task: 7 } });

    const renewed = await answer<LeaseHandle>("Renew", { lease: acquired });
    expect(renewed).toMatchObject({ token: acquired.token, fencingToken: acquired.fencingToken });
    expect(renewed.version).toBeGreaterThan(acquired.version);
    // Each function tells what another process may believe by the service's time as its own answers have told it, to a second.
    expect(renewed.expiresAt).toBeGreaterThan(acquired.expiresAt - 1_000);
    // The handle from before the renewal will do as well.
    expect((await answer<LeaseHandle>("Renew", { lease: acquired })).token).toBe(acquired.token);

    expect(await answer("Release", { lease: renewed })).toEqual({ released: true });
    expect(await it.leases.inspect(key)).toBeUndefined();
    const next = await answer<LeaseHandle>("Acquire", { key });
    expect(next.fencingToken).toBeGreaterThan(acquired.fencingToken);
    // The same answer again, whoever has the lock by now.
    expect(await answer("Release", { lease: renewed })).toEqual({ released: true });
    expect(await it.leases.inspect(key)).toMatchObject({ token: next.token });
  });

  test("and a client take on each other's leases", async () => {
    const key = newKey();
    const handle = await answer<LeaseHandle>("Acquire", { key });
    const adopted = it.leases.adopt(handle);
    await adopted.renew();
    expect(await adopted.release()).toBe(true);
    const lease = await it.leases.acquire(key);
    expect(await answer("Release", { lease: lease.toJSON() })).toEqual({ released: true });
  });

  test("gets the lock as soon as it is released, if it waits", async () => {
    const key = newKey();
    const lease = await it.leases.acquire(key);
    const waiting = answer<LeaseHandle>("Acquire", { key, waitMs: 20_000 });
    await it.proxy.arrival(({ operation, body }) => operation === "GetItem" && body.Key.pk.S === key);
    await lease.release();
    expect(await waiting).toMatchObject({ key });
  });
});

describe("what is not understood, or none of their business", () => {
  const handle = (changes: object) => async () => {
    const lease = await it.leases.acquire("shared/a lease with a good handle", {
      owner: "the holder of a good handle",
      reentrant: true,
    });
    return { lease: { ...lease.toJSON(), ...changes } };
  };
  const given = (event: unknown) => async () => event;

  test.for([
    ["Acquire", "null", given(null), "InvalidOptionsError"],
    ["Acquire", "a wait that is no number", given({ key: "shared/x", waitMs: "5" }), "InvalidOptionsError"],
    ["Acquire", "the key of another job", given({ key: "close-unpaid-orders" }), "KeyNotAllowedError"],
    ["Renew", "a handle with the key of another job", handle({ key: "import-orders" }), "KeyNotAllowedError"],
    ["Renew", "a handle with somebody's guess of a token", handle({ token: "guess" }), "LeaseLostError"],
    ["Release", "no event at all", given(undefined), "InvalidOptionsError"],
    ["Release", "a handle of another table", handle({ tableName: "elsewhere" }), "InvalidOptionsError"],
  ] as const)("%s refuses %s, and changes nothing", async ([name, , eventOf, errorType]) => {
    const event = await eventOf();
    const before = await it.items(leaseTable);
    const refused = await failure(name, event);
    expect(refused.errorType).toBe(errorType);
    expect(await it.items(leaseTable)).toEqual(before);
  });

  test("Release of a lease that is another's by now releases nothing", async () => {
    const { lease } = (await handle({ token: "guess" })()) as { lease: LeaseHandle };
    const before = await it.items(leaseTable);
    expect(await answer("Release", { lease })).toEqual({ released: false });
    expect(await it.items(leaseTable)).toEqual(before);
  });
});
