import { brandClass, InvalidOptionsError, LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let store: ScriptedStore;
let client: LeaseClient;

beforeEach(() => {
  store = new ScriptedStore();
  client = new LeaseClient({ store, clock: new ManualClock(), leaseDurationMs: 10_000, clockSkewMs: 1_000 });
});

/** What a caller without a type checker may pass. */
// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

/** Refused by name, with the value and what is allowed, and before anything was sent. */
async function expectRefusal(attempt: () => Anything, option: string, value: unknown): Promise<void> {
  const error: unknown = await Promise.resolve()
    .then(attempt)
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InvalidOptionsError);
  const refusal = error as InvalidOptionsError;
  expect(refusal).toMatchObject({ name: "InvalidOptionsError", code: "LEASE_INVALID_OPTIONS", option });
  expect(Object.is(refusal.value, value)).toBe(true);
  expect(refusal.message).toContain(option);
  expect(refusal.message).toContain(refusal.allowed);
  expect(store.calls).toEqual([]);
}

const badDurations = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, "1000", null, 2 ** 53];

describe("a client is refused", () => {
  type Refused = [option: keyof LeaseClientOptions, value: unknown, others?: object];
  const noStore = { store: undefined };
  it.each<Refused>([
    ...badDurations.map((value): Refused => ["leaseDurationMs", value]),
    ["leaseDurationMs", 0],
    ["clockSkewMs", -1],
    ["clockSkewMs", 0.5],
    ["clockSkewMs", Number.NaN],
    ["clockSkewMs", 30_001],
    ["clockSkewMs", 501, { leaseDurationMs: 500 }],
    ["retentionMs", -1],
    ["retentionMs", 999, { clockSkewMs: 1_000 }],
    ["owner", ""],
    ["onEvent", "console.log"],
    ...[undefined, "", "ab", "with space", 7].map((name): Refused => ["tableName", name, noStore]),
    ...[{}, null].map((sender): Refused => ["dynamodb", sender, { ...noStore, tableName: "leases" }]),
    ...[{}, { now: () => 0, monotonic: () => 0 }, "system", null].map((part): Refused => ["clock", part]),
    ...[{}, { token: () => "t" }, () => 0].map((part): Refused => ["randomness", part]),
    ...[{}, { tableName: "t", update: () => undefined }, "leases", null].map(
      (part): Refused => ["store", part],
    ),
  ])("with %s %o", async (option, value, others = {}) => {
    await expectRefusal(
      () => new LeaseClient({ store, ...others, [option]: value } as Anything),
      option,
      value,
    );
  });

  it("with an option that nobody knows", async () => {
    await expectRefusal(
      () => new LeaseClient({ store, leaseDurationMillis: 5 } as Anything),
      "options.leaseDurationMillis",
      5,
    );
  });

  it("with both a store and a table", async () => {
    await expectRefusal(() => new LeaseClient({ store, tableName: "leases" }), "store", store);
  });

  it("with an owner or a table name that is too long", async () => {
    const [owner, tableName] = ["x".repeat(1_025), "x".repeat(256)];
    await expectRefusal(() => new LeaseClient({ store, owner }), "owner", owner);
    await expectRefusal(() => new LeaseClient({ tableName }), "tableName", tableName);
  });

  it("with a store without a table's name", async () => {
    const { update, updateMany, transact, get, query, scan } = ScriptedStore.prototype;
    const nameless = { update, updateMany, transact, get, query, scan };
    await expectRefusal(() => new LeaseClient({ store: nameless } as Anything), "store.tableName", undefined);
  });

  it("with randomness whose token is no text", async () => {
    const randomness = { token: () => 7, fraction: () => 0 };
    await expectRefusal(() => new LeaseClient({ store, randomness } as Anything), "randomness.token()", 7);
  });

  it("without options", async () => {
    await expectRefusal(() => new (LeaseClient as Anything)(), "options", undefined);
  });
});

describe("what is given for a client and is none", () => {
  class Foreign {}
  brandClass(Foreign, "LeaseClient");

  it.each([undefined, null, 1, "client", {}])("%s is refused by name", (given) => {
    expect(() => new Semaphore(given as never, "k", { permits: 1 })).toThrow(
      /^client is .*; allowed: a LeaseClient/,
    );
  });

  it("that cannot be looked at is refused by name, too", () => {
    const getPrototypeOf = (): never => {
      throw new Error("hidden");
    };
    const hidden = new Proxy({}, { getPrototypeOf });
    expect(() => new Semaphore(hidden as never, "k", { permits: 1 })).toThrow(/^client/);
  });

  it("of another copy of the package is told what to install", () => {
    expect(() => new Semaphore(new Foreign() as never, "k", { permits: 1 })).toThrow(
      /client is a LeaseClient of another copy of @leasehold\/client.*npm ls/,
    );
  });
});

describe("options are read once, wherever they are:", () => {
  class Defaults {
    get leaseDurationMs(): number {
      return 4_000;
    }
  }

  it("those that are inherited count", async () => {
    const lease = await client.acquire("k", Object.create({ leaseDurationMs: 5_000 }));
    expect(lease.remainingMs()).toBe(5_000);
    expect((await client.acquire("l", new Defaults())).remainingMs()).toBe(4_000);
    const bare = Object.assign(Object.create(null), { leaseDurationMs: 6_000 });
    expect((await client.acquire("m", bare)).remainingMs()).toBe(6_000);
  });

  it("those that are inherited and misspelt are refused", async () => {
    await expectRefusal(
      () => client.acquire("k", Object.create({ leaseDurationMillis: 5 })),
      "options.leaseDurationMillis",
      5,
    );
    class Misspelt {
      get heartBeat(): boolean {
        return true;
      }
    }
    await expectRefusal(() => client.acquire("k", new Misspelt() as Anything), "options.heartBeat", true);
    const bare = Object.assign(Object.create(null), { waitMillis: 1 });
    await expectRefusal(() => client.acquire("k", bare), "options.waitMillis", 1);
  });

  it("a getter that throws is refused by its name, with what it threw as the cause", async () => {
    const cause = new TypeError("no configuration");
    const broken = (option: string): Anything =>
      Object.defineProperty({}, option, {
        enumerable: true,
        get: () => {
          throw cause;
        },
      });
    const calls: [string, () => Anything][] = [
      ["options.waitMs", () => client.acquire("k", broken("waitMs"))],
      ["options.heartbeat", () => client.tryAcquire("k", broken("heartbeat"))],
      ["options.prefix", () => adminOf(client).list(broken("prefix")).next()],
      ["options.token", () => adminOf(client).forceRelease("k", broken("token"))],
      ["options.owner", () => new LeaseClient(broken("owner"))],
      ["handle.token", () => client.adopt(broken("token"))],
      ["retry.strategy", () => client.acquire("k", { waitMs: 1, retry: broken("strategy") })],
      ["data.inner", () => client.acquire("k", { data: broken("inner") })],
    ];
    for (const [option, call] of calls) {
      await expectRefusal(call, option, undefined);
      const error: unknown = await Promise.resolve()
        .then(call)
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        cause,
        message: expect.stringContaining("cannot be read (no configuration)"),
      });
    }
  });

  it("an object that does not let itself be looked at is refused too", async () => {
    const refuses = (): never => {
      throw new Error("closed");
    };
    const proxy: Anything = new Proxy({}, { ownKeys: refuses, getPrototypeOf: refuses });
    await expectRefusal(() => client.acquire("k", proxy), "options", proxy);
    await expectRefusal(() => client.acquire("k", { data: [proxy] }), "data.0", proxy);
  });

  it("a getter is asked once, so that what was checked is what is used", async () => {
    let asked = 0;
    const changing = {
      get leaseDurationMs(): number {
        asked += 1;
        return asked === 1 ? 5_000 : Number.NaN;
      },
    };
    expect((await client.acquire("k", changing)).remainingMs()).toBe(5_000);
  });
});

it("a payload nests a hundred levels, and one that nests deeper is refused without a stack's overflow", async () => {
  const nested = (levels: number): unknown =>
    Array.from({ length: levels }).reduce<unknown>((inner) => [inner], 0);
  expect((await client.acquire("deep", { data: nested(100) })).data).toEqual(nested(100));
  store.calls.length = 0;
  for (const levels of [101, 20_000]) {
    const attempt = (): Anything => client.acquire("k", { data: nested(levels) });
    const hundredFirst = `data${".0".repeat(100)}`;
    expect(
      await Promise.resolve()
        .then(attempt)
        .catch((error: unknown) => error),
    ).toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
      option: hundredFirst,
      allowed: expect.stringContaining("100 deep"),
    });
    expect(store.calls).toEqual([]);
  }
});

describe("a table is known by", () => {
  it.each(["abc", "Leases_2.prod-eu", "arn:aws:dynamodb:eu-central-1:123456789012:table/leases"])(
    "%s",
    (tableName) => {
      expect(
        () => new LeaseClient({ tableName, dynamodb: { send: () => undefined } as Anything }),
      ).not.toThrow();
    },
  );
});

describe("a key is refused that is", () => {
  it.each([
    ["empty", ""],
    ["over DynamoDB's limit by one byte", "k".repeat(2_049)],
    ["over DynamoDB's limit in bytes, though not in characters", "ü".repeat(1_025)],
    ["not well-formed", "k\ud800"],
    ["not a string", 42],
    ["missing", undefined],
  ])("%s", async (_, key) => {
    const calls: ((key: Anything) => Anything)[] = [
      (bad) => client.acquire(bad),
      (bad) => client.tryAcquire(bad),
      (bad) => client.withLease(bad, {}, () => 1),
      (bad) => client.inspect(bad),
      (bad) => adminOf(client).forceRelease(bad, { token: "t" }),
      (bad) => adminOf(client).requestRevocation(bad, { token: "t" }),
    ];
    for (const call of calls) await expectRefusal(() => call(key), "key", key);
  });

  it("and one of just the limit is not", async () => {
    expect((await client.acquire("ü".repeat(1_024))).held).toBe(true);
  });
});

describe("an acquisition is refused", () => {
  const listOfOne = ["fixed"];

  it.each(badDurations)("with the duration %s, whichever option it is", async (value) => {
    for (const option of ["leaseDurationMs", "waitMs", "lockAtLeastForMs"]) {
      await expectRefusal(() => client.acquire("k", { [option]: value } as Anything), option, value);
    }
  });

  it.each([
    ["leaseDurationMs", 0],
    ["leaseDurationMs", 999],
    ["lockAtLeastForMs", 10_001],
    ["heartbeat", 5_000],
    ["heartbeat", 0],
    ["heartbeat", -1],
    ["heartbeat", 1.5],
    ["heartbeat", "often"],
    ["owner", ""],
    ["signal", {}],
    ["reentrant", "yes"],
    ["retry", "fixed"],
  ])("with %s %s", async (option, value) => {
    await expectRefusal(() => client.acquire("k", { [option]: value } as Anything), option, value);
  });

  it.each([
    [{ strategy: "often" }, "retry.strategy", "often"],
    [{ strategy: listOfOne, delayMs: 5 }, "retry.strategy", listOfOne],
    [{ strategy: "fixed" }, "retry.delayMs", undefined],
    [{ strategy: "fixed", delayMs: 0 }, "retry.delayMs", 0],
    [{ strategy: "fixed", delayMs: 10, maxDelayMs: 20 }, "retry.maxDelayMs", 20],
    [{ strategy: "exponential", delayMs: 10, maxDelayMs: 5 }, "retry.maxDelayMs", 5],
    [{ strategy: "untilExpiry", delayMs: 10 }, "retry.delayMs", 10],
    [{ strategy: "untilExpiry", maxRetries: 5 }, "retry.maxRetries", 5],
    [{ strategy: "fixed", delayMs: 10, maxRetries: 0 }, "retry.maxRetries", 0],
    [{ strategy: "linear", delayMs: 10, maxRetries: 1.5 }, "retry.maxRetries", 1.5],
    [{ strategy: "exponential", delayMs: 10, minDelayMs: 5 }, "retry.minDelayMs", 5],
    [{ strategy: "random", maxDelayMs: 5 }, "retry.minDelayMs", undefined],
    [{ strategy: "random", minDelayMs: 10 }, "retry.maxDelayMs", undefined],
    [{ strategy: "random", minDelayMs: 10, maxDelayMs: 5 }, "retry.maxDelayMs", 5],
    [{ strategy: "random", minDelayMs: 1, maxDelayMs: 5, delayMs: 2 }, "retry.delayMs", 2],
  ])("with the retry %j", async (retry, option, value) => {
    await expectRefusal(() => client.acquire("k", { waitMs: 1, retry } as Anything), option, value);
  });

  it("with an option that nobody knows, or that does not belong there, or with null for all of them", async () => {
    await expectRefusal(() => client.acquire("k", null as Anything), "options", null);
    await expectRefusal(() => client.acquire("k", { ttl: 5 } as Anything), "options.ttl", 5);
    await expectRefusal(() => client.tryAcquire("k", { waitMs: 5 } as Anything), "options.waitMs", 5);
    await expectRefusal(() => client.close({ waitMs: 5 } as Anything), "options.waitMs", 5);
    const handle = (await client.acquire("k")).toJSON();
    store.calls.length = 0;
    await expectRefusal(() => client.adopt(handle, { waitMs: 5 } as Anything), "options.waitMs", 5);
  });

  it("with work that is no function, or with two of them", async () => {
    await expectRefusal(() => client.withLease("k", {}, "work" as Anything), "work", "work");
    const work = (): void => undefined;
    await expect(client.withLease("k", work as Anything, work)).rejects.toMatchObject({ option: "options" });
    expect(store.calls).toEqual([]);
  });

  it.each([
    ["data", Number.NaN],
    ["data", () => 1],
    ["data", 1n],
    ["data", Symbol.iterator],
    ["data.at", new Date(0)],
    ["data.list.1", undefined],
    ["data.map", new Map()],
  ])("with a payload that JSON cannot carry at %s", async (path, value) => {
    const data = path
      .split(".")
      .slice(1)
      .reduceRight<unknown>((inner, name) => (name === "1" ? [0, inner] : { [name]: inner }), value);
    await expectRefusal(() => client.acquire("k", { data }), path, value);
  });

  it("with a payload that contains itself", async () => {
    const data: Record<string, unknown> = {};
    data.self = data;
    await expectRefusal(() => client.acquire("k", { data }), "data.self", data);
  });

  it("with a payload over the item's limit, by one byte", async () => {
    const most = 400 * 1024 - 8 * 1024 - 2;
    await expectRefusal(() => client.acquire("k", { data: "x".repeat(most + 1) }), "data", most + 3);
    expect((await client.acquire("k", { data: "x".repeat(most) })).held).toBe(true);
  });

  it("with a signal that has aborted, by the signal's own reason", async () => {
    await expect(client.acquire("k", { signal: AbortSignal.abort(new Error("too late")) })).rejects.toThrow(
      "too late",
    );
    expect(store.calls).toEqual([]);
  });
});

describe("a handle is refused", () => {
  /** By member, what it cannot be; each member that a handle needs can also not be missing. */
  const wrong: Readonly<Record<string, readonly unknown[]>> = {
    tableName: [undefined, "other"],
    key: [undefined, "", "k".repeat(2_049), 7],
    owner: [undefined, "", "a\ud800", 7],
    token: [undefined, "", 7],
    // The last two are versions that no lease has had, so that nobody could read what it renews.
    version: [undefined, 0, 1.5, "1", 10_000_000_000_001, Number.MAX_SAFE_INTEGER],
    fencingToken: [undefined, -1, 1.5, "1"],
    acquiredAt: [undefined, -1, 1.5, "1"],
    expiresAt: [undefined, -1, 1.5, "1"],
    leaseDurationMs: [undefined, 0, 1.5, 367 * 86_400_000, "1"],
    ownClock: ["true", 1],
    cooldownUntil: [-1, 1.5, "1"],
    slot: [new Date(0), "", "a\nb"],
    sortKey: ["", "x".repeat(1_025), 7],
  };

  it.each(
    Object.entries(wrong).flatMap(([member, values]) =>
      values.map((value) => [member, value] as [string, unknown]),
    ),
  )("whose %s is %j", async (member, value) => {
    const handle = (await client.acquire("k", { slot: "1" })).toJSON();
    store.calls.length = 0;
    await expectRefusal(() => client.adopt({ ...handle, [member]: value }), `handle.${member}`, value);
  });

  it("of a cooldown, which nobody holds", async () => {
    const lease = await client.acquire("k", { lockAtLeastForMs: 10_000 });
    await lease.release();
    const { token = "" } = (await client.inspect("k")) ?? {};
    store.calls.length = 0;
    const adopt = () => client.adopt({ ...lease.toJSON(), token });
    await expectRefusal(adopt, "handle.token", token);
    expect(adopt).toThrow("is that of a cooldown");
  });

  it.each([1_000_000_001, 31_708_800_000, Number.MAX_SAFE_INTEGER])(
    "of a permit, with a version that the text of a seat has no room for: %d",
    async (version) => {
      const semaphore = new Semaphore(client, "k", { permits: 1 });
      const permit = await semaphore.acquire();
      store.calls.length = 0;
      await expectRefusal(() => semaphore.adopt({ ...permit.toJSON(), version }), "handle.version", version);
    },
  );

  it("of a permit, with a token that ends an attribute's name in a statement of PartiQL", async () => {
    const semaphore = new Semaphore(client, "k", { permits: 1 });
    const handle = (await semaphore.acquire()).toJSON();
    store.calls.length = 0;
    const token = `${handle.token}" = ? SET "token`;
    const adopt = () => semaphore.adopt({ ...handle, token });
    await expectRefusal(adopt, "handle.token", token);
    expect(adopt).not.toThrow(token);
  });

  it("of a permit, where a lock is to be adopted", async () => {
    const handle = (await new Semaphore(client, "k", { permits: 1 }).acquire()).toJSON();
    store.calls.length = 0;
    await expectRefusal(() => client.adopt(handle), "handle.seat", handle.seat);
  });

  it("of another key, of another kind, or of a lock, where a permit is to be adopted", async () => {
    const semaphore = new Semaphore(client, "k", { permits: 1 });
    const others = [
      await new Semaphore(client, "l", { permits: 1 }).acquire(),
      await new ReadWriteLock(client, "k").read(),
      await client.acquire("k"),
    ].map((lease) => lease.toJSON());
    store.calls.length = 0;
    for (const handle of others) {
      const [option, value] =
        handle.seat === undefined ? ["handle.seat", undefined] : ["handle.key", handle.key];
      await expectRefusal(() => semaphore.adopt(handle), option, value);
    }
  });

  it("that is none", async () => {
    const adopters = [client, new Semaphore(client, "k", { permits: 1 }), new ReadWriteLock(client, "k")];
    for (const adopter of adopters) {
      for (const value of ["token", null, undefined, 7, [], () => undefined])
        await expectRefusal(() => adopter.adopt(value as Anything), "handle", value);
      await expectRefusal(() => adopter.adopt({ secret: 1 } as Anything), "handle.key", undefined);
    }
  });
});

describe("a call of an administrator is refused", () => {
  const admin = () => adminOf(client);
  const long = "x".repeat(1_025);
  const notBehind = ["k", {}, { pk: "k" }, { pk: "", sk: "lease" }, { pk: "k", sk: 1 }];

  it.each<[string, string, unknown, () => Anything]>([
    ["forceRelease", "token", undefined, () => admin().forceRelease("k", {} as Anything)],
    [
      "requestRevocation",
      "token",
      undefined,
      () => admin().requestRevocation("k", { reason: "x" } as Anything),
    ],
    ["requestRevocation", "reason", long, () => admin().requestRevocation("k", { token: "t", reason: long })],
    ["takeBackSlot", "doneSlot", undefined, () => admin().takeBackSlot("k", {} as Anything)],
    ["takeBackSlot", "options", undefined, () => admin().takeBackSlot("k", undefined as Anything)],
    ...["7", "8", "", 6].map((to): [string, string, unknown, () => Anything] => [
      "takeBackSlot of 7",
      "to",
      to,
      () => admin().takeBackSlot("k", { doneSlot: "7", to: to as string }),
    ]),
    ["inspect", "sortKey", "", () => admin().inspect("k", { sortKey: "" })],
    ["forceRelease", "sortKey", 1, () => admin().forceRelease("k", { token: "t", sortKey: 1 } as Anything)],
    ["requestRevocation", "sortKey", "", () => admin().requestRevocation("k", { token: "t", sortKey: "" })],
    ["inspectAll", "key", "", () => admin().inspectAll("")],
    [
      "list",
      "all",
      "yes",
      () =>
        admin()
          .list({ all: "yes" } as Anything)
          .next(),
    ],
    ...notBehind.map((after): [string, string, unknown, () => Anything] => [
      "listPages",
      "after",
      after,
      () =>
        admin()
          .listPages({ after } as Anything)
          .next(),
    ]),
  ])("%s, by its %s %j", async (_, option, value, call) => {
    await expectRefusal(call, option, value);
  });

  it("with the advice to read the token first", async () => {
    await expect(admin().forceRelease("k", {} as Anything)).rejects.toThrow("as inspect(key)");
  });
});

it("every JSON value comes back as it was stored", async () => {
  let keys = 0;
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (data) => {
      keys += 1;
      const lease = await client.acquire(`json/${keys}`, { data });
      // JSON itself has no negative zero.
      expect(lease.data).toEqual(JSON.parse(JSON.stringify(data)));
    }),
  );
});
