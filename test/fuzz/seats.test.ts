// Handles of seats that come from elsewhere: of an item in which others have seats too. Whatever a handle says, only the seat that
// its token and its fencing token prove may change, and the item's counters stay equal to its seats.

import { type Lease, LeaseClient, LeaseLostError } from "@leasehold/client";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import fc from "fast-check";
import { expect } from "vitest";
import { type SeatRecord, seatsIn } from "../../packages/client/src/primitives/seats/seat.ts";
import { Bench, isNamed } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText, made, mostly, type Recipe } from "./hostile.ts";

/** The leases of one item: the first is the one whose handle is changed. */
const items: Readonly<Record<string, (one: LeaseClient, other: LeaseClient) => Promise<readonly Lease[]>>> = {
  permit: async (one, other) => {
    const semaphore = (client: LeaseClient): Semaphore => new Semaphore(client, "k", { permits: 9 });
    return [
      await semaphore(one).acquire({ permits: 2, data: { note: "ours" } }),
      await semaphore(other).acquire({ permits: 3 }),
      await semaphore(other).acquire({ owner: "sharing", reentrant: true }),
    ];
  },
  "reentrant permit": async (one, other) => [
    await new Semaphore(one, "k", { permits: 9 }).acquire({ owner: "first", reentrant: true }),
    await new Semaphore(other, "k", { permits: 9 }).acquire({ owner: "sharing", reentrant: true }),
  ],
  read: async (one, other) => [
    await new ReadWriteLock(one, "k").read(),
    await new ReadWriteLock(other, "k").read({ owner: "sharing", reentrant: true }),
    await new ReadWriteLock(other, "k").read({ data: [1] }),
  ],
  write: async (one) => {
    const [lock, own] = [new ReadWriteLock(one, "k"), { owner: "sharing", reentrant: true }];
    return [await lock.write(own), await lock.read(own)];
  },
};

/** What a member of the handle becomes. `other's` is that of another seat of the item. */
type Change = {
  readonly member: string;
  readonly to: Recipe | "removed" | "other's";
};
const number = fc.oneof(
  fc.nat({ max: 12 }),
  fc.nat(),
  fc.maxSafeNat(),
  fc.constantFrom(1_000_000_000, 8_640_000_000_000_000, Number.MAX_SAFE_INTEGER, 2 ** 53),
);
const change: fc.Arbitrary<Change> = fc
  .constantFrom(
    ["version", number] as const,
    ["fencingToken", number] as const,
    ["acquiredAt", number] as const,
    ["expiresAt", number] as const,
    ["leaseDurationMs", number] as const,
    ["cooldownUntil", number] as const,
    ["key", fc.constantFrom("k", "other", "__proto__")] as const,
    ["sortKey", fc.constantFrom("semaphore", "read-write", "lease", "x")] as const,
    ["owner", fc.oneof(fc.constantFrom("sharing", "first", "x"), hostileText)] as const,
    ["token", fc.oneof(fc.constantFrom("", "x", "closed:x"), hostileText)] as const,
    ["slot", fc.constantFrom("7", "x")] as const,
    ["seat", fc.constantFrom({ kind: "permit", permits: 4, reentrant: true }, {}, [])] as const,
    ["seat.kind", fc.constantFrom("permit", "read", "write", "intent", "toString")] as const,
    ["seat.permits", number] as const,
    ["seat.reentrant", fc.boolean()] as const,
    ["seat.data", fc.oneof(fc.jsonValue({ maxDepth: 2 }), hostileText)] as const,
    ["seat.unknown", fc.constant(1)] as const,
  )
  .chain(([member, right]) =>
    fc.record({
      member: fc.constant(member),
      to: fc.oneof(
        { weight: 6, arbitrary: mostly(right) },
        { weight: 1, arbitrary: fc.constantFrom("removed" as const, "other's" as const) },
      ),
    }),
  );

fuzz(
  "a handle of a seat with any members harms no other holder's seat, and the counters stay equal to the seats",
  fc.record({
    kind: fc.constantFrom(...Object.keys(items)),
    /** How often the holder has renewed since it gave its handle away. */
    renewals: fc.nat({ max: 2 }),
    changes: fc.array(change, { minLength: 1, maxLength: 3 }),
    calls: fc.array(fc.constantFrom("renew" as const, "release" as const), { minLength: 1, maxLength: 3 }),
  }),
  async ({ kind, renewals, changes, calls }) => {
    const bench = new Bench();
    const { store, clock, client } = bench;
    const holders = new LeaseClient({ store, clock, owner: "other" });
    const [own, ...others] = (await items[kind]?.(client, holders)) ?? [];
    if (own === undefined) throw new Error("there is no such item");
    const handle = changed(own, others[0], changes);
    // With both tokens of another it is that holder's own handle.
    if (
      others.some(({ token, fencingToken: fence }) => handle.token === token && handle.fencingToken === fence)
    )
      return undefined;
    for (let renewal = 0; renewal < renewals; renewal += 1) await own.renew();
    const seats = (): readonly SeatRecord[] =>
      seatsIn(store.table.peek({ pk: "k", sk: own.toJSON().sortKey ?? "" }));
    const before = seats();

    const isAdopted = await use(bench, kind, handle, calls);
    // It throws where a counter differs, or where a seat cannot be read.
    const after = seats();
    const isOf = (lease: Lease) => (seat: SeatRecord) => seat.token === lease.token;
    for (const other of others) expect(after.find(isOf(other))).toEqual(before.find(isOf(other)));
    const [was, is] = [before.find(isOf(own)), after.find(isOf(own))];
    if (is !== undefined) {
      const { version: _, expiresAt, leaseDurationMs: __, ...kept } = is;
      expect(was).toMatchObject(kept);
      expect(expiresAt).toBeLessThan(clock.now() + 400 * 86_400_000);
    }
    for (const other of others) {
      await other.renew();
      await other.release();
    }
    await own.release().catch((error: unknown) => expect(isNamed(error)).toBe(true));
    await holders.close();
    await client.close();
    const left = seats().filter(({ inCooldown }) => !inCooldown);
    expect(left).toEqual([]);
    return isAdopted ? [kind] : undefined;
  },
  { few: 300, many: 20_000, accepted: { share: 0.1, options: Object.keys(items) } },
);

type Members = Record<string, unknown>;

/** Gives the handle of a lease with other members; `other` is that of another seat. */
function changed(lease: Lease, other: Lease | undefined, changes: readonly Change[]): Members {
  const [handle, others] = [lease, other].map((each) => JSON.parse(JSON.stringify(each ?? {})) as Members);
  const { seat, ...rest } = handle ?? {};
  const [whole, part] = [{ ...rest, seat } as Members, seat as Members];
  for (const { member, to } of changes) {
    const ofSeat = member.startsWith("seat.");
    const name = ofSeat ? member.slice("seat.".length) : member;
    const [target, source] = ofSeat ? [part, others?.seat as Members | undefined] : [whole, others];
    if (to === "removed") delete target[name];
    else target[name] = to === "other's" ? source?.[name] : made(to);
  }
  return whole;
}

/** Makes calls of the lease that a handle stands for, in another process; tells whether it stands for one. */
async function use(
  { store, clock }: Bench,
  kind: string,
  handle: unknown,
  calls: readonly ("renew" | "release")[],
): Promise<boolean> {
  const client = new LeaseClient({ store, clock });
  const adopter = kind.endsWith("permit")
    ? new Semaphore(client, "k", { permits: 9 })
    : new ReadWriteLock(client, "k");
  const sent = store.calls.length;
  let lease: Lease;
  try {
    lease = adopter.adopt(handle as never);
  } catch (error) {
    if (!isNamed(error)) throw new Error("not a named error", { cause: error });
    expect(store.calls.length).toBe(sent);
    return false;
  }
  for (const call of calls) {
    await lease[call]().catch((error: unknown) => {
      if (!(error instanceof LeaseLostError) && !isNamed(error))
        throw new Error("not a named error", { cause: error });
    });
  }
  await clock.advance(1);
  return true;
}
