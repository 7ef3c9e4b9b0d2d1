import type * as Client from "@leasehold/client";
import type * as Fair from "@leasehold/client/fair";
import type * as Group from "@leasehold/client/group";
import type * as Leader from "@leasehold/client/leader";
import type * as ReadWrite from "@leasehold/client/read-write";
import type * as SingleFlight from "@leasehold/client/single-flight";
import type * as Testing from "@leasehold/client/testing";
import type * as Jobs from "@leasehold/jobs";
import type * as Middy from "@leasehold/middy";
import { describe, expect, it, vi } from "vitest";
import { bundled } from "../support/bundled.ts";

type ErrorClass = new (...args: never[]) => Error;
type Copy = typeof Client &
  typeof Fair &
  typeof Group &
  typeof Jobs &
  typeof Leader &
  typeof ReadWrite &
  typeof SingleFlight &
  typeof Testing &
  typeof Middy;

/** Loads the packages once more: as another version of them, or a copy inside a bundle, would be in the same process. */
async function loadCopy(): Promise<Copy> {
  vi.resetModules();
  const modules = await Promise.all([
    import("@leasehold/client"),
    import("@leasehold/client/fair"),
    import("@leasehold/client/group"),
    import("@leasehold/client/leader"),
    import("@leasehold/client/read-write"),
    import("@leasehold/client/single-flight"),
    import("@leasehold/client/testing"),
    import("@leasehold/durable"),
    import("@leasehold/jobs"),
    import("@leasehold/middy"),
  ]);
  return Object.assign({}, ...modules);
}

const [one, other] = [await loadCopy(), await loadCopy()];

function errorClasses(copy: Copy): Map<string, ErrorClass> {
  const exported: [string, unknown][] = Object.entries(copy);
  return new Map(
    exported.filter((entry): entry is [string, ErrorClass] => {
      const [, value] = entry;
      return typeof value === "function" && value.prototype instanceof Error;
    }),
  );
}

const classes = errorClasses(one);
const otherClasses = errorClasses(other);
const names = [...classes.keys()];

/** An instance as far as `instanceof` is concerned: constructors want arguments of all kinds. */
const instanceOf = (type: ErrorClass): object => Object.create(type.prototype);

describe("instanceof, between two copies of the packages in one process", () => {
  it("is tried with copies that are two, and with every class of errors", () => {
    expect(one.LeaseError).not.toBe(other.LeaseError);
    expect(names).toEqual(
      expect.arrayContaining(["LeaseError", "GroupUnavailableError", "FinalFailureError"]),
    );
    expect(names).toEqual(expect.arrayContaining(["CompletionFailedError", "InvocationEndingError"]));
    expect(names.length).toBeGreaterThan(25);
  });

  it.each(names)("recognises %s, and answers for every other class as within one copy", (name) => {
    const type = classes.get(name) as ErrorClass;
    const error = instanceOf(otherClasses.get(name) as ErrorClass);
    expect(error).toBeInstanceOf(type);
    for (const [otherName, otherType] of classes) {
      const isWithin = otherType === type || type.prototype instanceof otherType;
      expect(error instanceof otherType, `${name} instanceof ${otherName}`).toBe(isWithin);
    }
  });

  it("recognises an error that was really thrown, with what it says", async () => {
    const client = new one.LeaseClient({ tableName: "leases" });
    const failure = await client.acquire("").catch((error: unknown) => error);
    if (!(failure instanceof other.InvalidOptionsError)) throw failure;
    expect(failure.code).toBe("LEASE_INVALID_OPTIONS");
    expect(failure.option).toBe("key");
  });

  it("recognises a user's subclass as its base, and as no other subclass of a user's", () => {
    class ShopError extends one.LeaseError {}
    class OtherShopError extends other.LeaseError {}
    const error = new ShopError("LEASE_LOST", "lost");
    expect(error).toBeInstanceOf(ShopError);
    expect(error).toBeInstanceOf(other.LeaseError);
    expect(error).not.toBeInstanceOf(OtherShopError);
    expect(new one.LeaseError("LEASE_LOST", "lost")).not.toBeInstanceOf(ShopError);
    expect(new one.LeaseError("LEASE_LOST", "lost")).not.toBeInstanceOf(OtherShopError);
  });

  it("takes no look-alike for an error: no plain object, no JSON of an error, no error with the same name and code", () => {
    const error = new one.LeaseError("LEASE_LOST", "lost");
    const named = Object.assign(new Error("lost"), { name: "LeaseError", code: "LEASE_LOST" });
    const lookAlikes: unknown[] = [
      { ...error },
      JSON.parse(JSON.stringify(error)),
      structuredClone(error),
      named,
      Object.create(null),
      one.LeaseError,
      one.LeaseError.prototype,
      "LeaseError",
      null,
      undefined,
      Symbol.for("LeaseError"),
    ];
    for (const lookAlike of lookAlikes) expect(lookAlike instanceof one.LeaseError).toBe(false);
    for (const lookAlike of lookAlikes) expect(lookAlike instanceof other.LeaseError).toBe(false);
  });
});

describe("a client of another copy of the package", () => {
  it("is a client for a handler, which tells its refusals from failures", async () => {
    const client = new other.LeaseClient({ store: new other.MemoryLeaseStore(), owner: "holder" });
    const context = { functionName: "job", awsRequestId: "1", getRemainingTimeInMillis: () => 30_000 };
    const handler = one.leased<object, string>(
      { client, key: "job", whenHeld: "skip", skipResult: "skipped" },
      async (_event: object, _context, { lease }) => (lease.held ? "ran" : "lost"),
    );
    const invoke = (): Promise<unknown> => handler({}, context as Parameters<typeof handler>[1]);
    expect(await invoke()).toBe("ran");
    const held = await client.acquire("job");
    expect(await invoke()).toBe("skipped");
    await held.release();
    expect(await invoke()).toBe("ran");
  });

  it("is refused by a primitive with the reason, for the parts of two copies need not fit", () => {
    const client = new other.LeaseClient({ tableName: "leases" });
    const refusal = expect.objectContaining({
      code: "LEASE_INVALID_OPTIONS",
      message: expect.stringMatching(/LeaseClient of another copy of @leasehold\/client.*npm ls/),
    });
    const ofOther = client as Client.LeaseClient;
    expect(() => new one.FairLock(ofOther, "desk")).toThrow(refusal);
    expect(() => new one.TaskSet(ofOther, "files")).toThrow(refusal);
    expect(() => new one.JobRuns(ofOther, "nightly")).toThrow(refusal);
  });

  it("is refused with the same reason where a bundler has shortened the names of its classes", async () => {
    const { code } = await bundled('export { LeaseClient } from "@leasehold/client/light"');
    const url = `data:text/javascript;base64,${Buffer.from(code).toString("base64")}`;
    const copy = (await import(/* @vite-ignore */ url)) as Pick<typeof Client, "LeaseClient">;
    expect(copy.LeaseClient.name).not.toBe("LeaseClient");
    const client = new copy.LeaseClient({ tableName: "leases" });
    expect(() => new one.FairLock(client, "desk")).toThrow(/LeaseClient of another copy.*npm ls/);
  });

  it("is no name alone: what is only called so is refused without that advice", () => {
    class LeaseClient {}
    const refusal = expect.objectContaining({ message: expect.not.stringContaining("npm ls") });
    expect(() => new one.FairLock(new LeaseClient() as Client.LeaseClient, "desk")).toThrow(refusal);
  });
});
