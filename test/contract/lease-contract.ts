import {
  type CallOptions,
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  LeaseLostError,
  type LeaseRecord,
  type LeaseStore,
  LeaseUnavailableError,
  SlotDoneError,
  type UpdateRequest,
} from "@leasehold/client";
import type { ListCursor } from "@leasehold/client/admin";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { eventually } from "../support/patience.ts";
import { PatientClock } from "../support/patient-clock.ts";
import { watchedMs } from "../support/watching.ts";
import { newKey } from "./new-key.ts";

/** Where a suite's leases are kept. */
export type Place = Pick<LeaseClientOptions, "store"> | Pick<LeaseClientOptions, "tableName" | "dynamodb">;

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;

/** The same store, whose single writes go another way. */
function withUpdate(store: LeaseStore, update: LeaseStore["update"]): LeaseStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "update") return update;
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

/**
 * What holds of leases wherever they are kept, beside what the store itself has to do for them (store-contract.ts); run for
 * memory and for every engine.
 *
 * The place is told the clock of each test: its service has to tell the same time, as it vouches for clocks.
 */
export function leaseContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;
  let events: LeaseEvent[];

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({
      ...place(clock),
      clock,
      owner,
      leaseDurationMs,
      clockSkewMs,
      onEvent: (event) => events.push(event),
      ...options,
    });
  /** Of the leases alone: that they are short for a network is told besides, once for each client. */
  const types = (): string[] => events.map((event) => event.type).filter((type) => type !== "shortLease");
  /** Lets timers fire and answers arrive until something holds. */
  const until = (holds: () => void | Promise<void>): Promise<void> => eventually(holds);

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("contract");
    events = [];
  });

  describe("acquire", () => {
    it("gives a lease of a free lock, which says what it is", async () => {
      const lease = await clientOf("a").acquire(key);
      expect(lease).toMatchObject({ key, owner: "a", held: true, acquiredAt: clock.now() });
      expect(lease.expiresAt).toBe(clock.now() + leaseDurationMs);
      expect(lease.remainingMs()).toBe(leaseDurationMs);
      expect(lease.signal.aborted).toBe(false);
      expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
      expect(types()).toEqual(["acquired"]);
    });

    it("is refused while another holds the lock, and says who, until when, and when to try again", async () => {
      const held = await clientOf("a").acquire(key);
      const refusal = await clientOf("b")
        .acquire(key)
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LeaseUnavailableError);
      expect(refusal).toMatchObject({
        code: "LEASE_UNAVAILABLE",
        key,
        holder: "a",
        expiresAt: held.expiresAt,
      });
      expect((refusal as LeaseUnavailableError).retryAfterMs).toBeGreaterThan(0);
      expect((refusal as LeaseUnavailableError).retryAfterMs).toBeLessThanOrEqual(
        leaseDurationMs + clockSkewMs + 1,
      );
      expect(types()).toEqual(["acquired", "contended"]);
    });

    it("takes a dead holder's lock over at its first call, once the allowance for skew is over", async () => {
      const dead = await clientOf("a").acquire(key);
      await clock.advance(leaseDurationMs + clockSkewMs);
      expect(await clientOf("b").tryAcquire(key)).toBeUndefined();
      await clock.advance(1);
      const next = await clientOf("c").tryAcquire(key);
      expect(next?.fencingToken).toBe(dead.fencingToken + 1);
      expect(events.find((event) => event.type === "takeover")).toMatchObject({
        reason: "serviceClock",
        owner: "c",
        from: { owner: "a", fencingToken: dead.fencingToken },
      });
    });

    it("waits for a release", async () => {
      const held = await clientOf("a", { leaseDurationMs: 60_000 }).acquire(key);
      const waiting = clientOf("b").acquire(key, { waitMs: 20_000 });
      await until(() => expect(types()).toContain("contended"));
      await held.release();
      let got: Lease | undefined;
      void waiting.then((lease) => {
        got = lease;
      });
      await until(async () => {
        // No faster than real time: the answers of an engine take that.
        await clock.advance(5);
        expect(got?.held).toBe(true);
      });
    });

    it("gives up when its signal aborts, with its reason as the cause, and holds nothing", async () => {
      const held = await clientOf("a", { leaseDurationMs: 60_000 }).acquire(key);
      const controller = new AbortController();
      const waiting = clientOf("b").acquire(key, { waitMs: 20_000, signal: controller.signal });
      await until(() => expect(types()).toContain("contended"));
      controller.abort(new Error("no longer wanted"));
      const cause = controller.signal.reason;
      await expect(waiting).rejects.toMatchObject({ code: "LEASE_ABORTED", key, cause });
      await held.release();
      expect(await clientOf("c").inspect(key)).toBeUndefined();
    });
  });

  describe("renew", () => {
    it("prolongs the lease from now", async () => {
      const lease = await clientOf("a").acquire(key);
      await clock.advance(200);
      await lease.renew();
      expect(lease.remainingMs()).toBe(leaseDurationMs);
      expect((await clientOf("b").inspect(key))?.expiresAt).toBe(lease.expiresAt);
    });

    it("fails once another has the lock, and changes nothing", async () => {
      const stale = await clientOf("a").acquire(key);
      clock.freeze(pastLease);
      const next = await clientOf("b").acquire(key);
      await expect(stale.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "expired" });
      const adopted = clientOf("a").adopt(stale.toJSON());
      await expect(adopted.renew()).rejects.toMatchObject({ reason: "taken" });
      expect(await clientOf("c").inspect(key)).toMatchObject({
        token: next.token,
        expiresAt: next.expiresAt,
      });
    });
  });

  describe("release", () => {
    it("frees the lock once, and gives the same answer when it is called again", async () => {
      const lease = await clientOf("a").acquire(key);
      expect(await Promise.all([lease.release(), lease.release()])).toEqual([true, true]);
      expect(lease.held).toBe(false);
      expect(lease.signal.reason).toMatchObject({ reason: "released" });
      expect(await clientOf("b").inspect(key)).toBeUndefined();
      expect(types()).toEqual(["acquired", "released"]);
    });

    it("touches nothing when the lock is another's", async () => {
      const stale = await clientOf("a").acquire(key);
      clock.freeze(pastLease);
      const next = await clientOf("b").acquire(key);
      expect([await stale.complete(), await stale.release()]).toEqual([false, false]);
      expect(await clientOf("c").inspect(key)).toMatchObject({ token: next.token, owner: "b" });
    });

    it("of a completed slot refuses that slot and every earlier one from then on, and grants a later one", async () => {
      const first = await clientOf("a").acquire(key, { slot: "2026-11-21T10:00:00.000Z" });
      expect(first.slot).toBe("2026-11-21T10:00:00.000Z");
      expect(await first.complete()).toBe(true);
      for (const slot of ["2026-11-21T10:00:00.000Z", "2026-11-21T09:59:00.000Z"]) {
        const refusal = await clientOf("b")
          .acquire(key, { slot })
          .catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(SlotDoneError);
        expect(refusal).toMatchObject({
          code: "LEASE_SLOT_DONE",
          key,
          slot,
          doneSlot: "2026-11-21T10:00:00.000Z",
        });
        expect(await clientOf("b").tryAcquire(key, { slot })).toBeUndefined();
      }
      const next = await clientOf("b").acquire(key, { slot: "2026-11-21T10:01:00.000Z" });
      expect(next.fencingToken).toBe(first.fencingToken + 1);
    });

    it.each([
      ["that nothing follows", ["release"], [true], false],
      [
        "that came before a completion, which says so",
        ["release", "complete", "release"],
        [true, false, true],
        false,
      ],
      ["that comes after a completion", ["complete", "release", "complete"], [true, true, true], true],
    ] as const)("%s leaves the slot as the first end has left it", async (_, ends, answers, isDone) => {
      const lease = await clientOf("a").acquire(key, { slot: "7" });
      for (const [index, end] of ends.entries()) expect(await lease[end]()).toBe(answers[index]);
      expect((await clientOf("b").tryAcquire(key, { slot: "7" })) === undefined).toBe(isDone);
    });

    it("without a slot is the same as a completion", async () => {
      const lease = await clientOf("a").acquire(key);
      expect([await lease.release(), await lease.complete()]).toEqual([true, true]);
    });

    it("of a completed slot is remembered through other uses of the lock, which take no notice of it", async () => {
      await (await clientOf("a").acquire(key, { slot: "7" })).complete();
      await (await clientOf("b").acquire(key)).complete();
      await (await clientOf("b").acquire(key, { slot: "8" })).release();
      await expect(clientOf("c").acquire(key, { slot: "7" })).rejects.toThrow(SlotDoneError);
    });

    it("of a completed slot outlasts a takeover that was judged before, and a late copy of an older acquire", async () => {
      const { store } = place(clock) as { readonly store: LeaseStore };
      const sent: UpdateRequest[] = [];
      const noting = withUpdate(store, (request, call) => {
        sent.push(request);
        return store.update(request, call);
      });
      await clientOf("a", { store: noting }).acquire(key);
      await clock.advance(pastLease);

      // Its second write is the takeover.
      const isJudged = Promise.withResolvers<void>();
      const maySend = Promise.withResolvers<void>();
      let writes = 0;
      const late = withUpdate(store, async (request, call) => {
        writes += 1;
        if (writes === 2) {
          isJudged.resolve();
          await maySend.promise;
        }
        return await store.update(request, call);
      });
      const delayed = clientOf("b", { store: late }).acquire(key, { slot: "7" });
      const outcome = expect(delayed).rejects.toThrow(SlotDoneError);
      await isJudged.promise;
      expect(await (await clientOf("c").acquire(key, { slot: "7" })).complete()).toBe(true);
      const call: CallOptions = { signal: new AbortController().signal, isCurrent: () => true };
      for (const copy of sent) expect(await store.update(copy, call)).toMatchObject({ applied: true });
      maySend.resolve();
      await outcome;
    });

    it("of a completed slot in its cooldown refuses the slot as done, not as held", async () => {
      const lease = await clientOf("a").acquire(key, { slot: "7", lockAtLeastForMs: 200 });
      await lease.complete();
      await expect(clientOf("b").acquire(key, { slot: "7" })).rejects.toThrow(SlotDoneError);
      await expect(clientOf("b").acquire(key, { slot: "8" })).rejects.toThrow(LeaseUnavailableError);
    });

    it("that was completed by mistake is taken back by those who have seen it, and earlier slots run again", async () => {
      const [early, wrong, due] = [
        "2026-11-21T10:00:00.000Z",
        "2036-11-21T10:00:00.000Z",
        "2026-11-21T10:01:00.000Z",
      ];
      const operator = clientOf("operator");
      expect(await operator.doneSlot(key)).toBeUndefined();
      await (await clientOf("a").acquire(key, { slot: early })).complete();
      await (await clientOf("a").acquire(key, { slot: wrong })).complete();
      await expect(clientOf("b").acquire(key, { slot: due })).rejects.toThrow(SlotDoneError);
      expect(await operator.doneSlot(key)).toBe(wrong);

      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: due, to: early })).toBe(false);
      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: wrong, to: early })).toBe(true);
      // As when the answer was lost, and it is sent again.
      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: wrong, to: early })).toBe(true);
      expect(await operator.doneSlot(key)).toBe(early);
      await expect(clientOf("b").acquire(key, { slot: early })).rejects.toThrow(SlotDoneError);
      const lease = await clientOf("b").acquire(key, { slot: due });
      expect(await lease.complete()).toBe(true);
      // A copy that arrives late finds another slot done, and leaves it alone.
      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: wrong, to: early })).toBe(false);
      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: due })).toBe(true);
      expect(await operator.doneSlot(key)).toBeUndefined();
      expect((await clientOf("b").acquire(key, { slot: early })).fencingToken).toBeGreaterThan(
        lease.fencingToken,
      );
    });

    it("taken back makes no lock, and leaves a holder alone", async () => {
      const operator = clientOf("operator");
      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: "7" })).toBe(true);
      expect(await operator.doneSlot(key)).toBeUndefined();
      await (await clientOf("a").acquire(key, { slot: "7" })).complete();
      const held = await clientOf("a").acquire(key);
      expect(await adminOf(operator).takeBackSlot(key, { doneSlot: "7" })).toBe(true);
      expect(await held.renew()).toBeUndefined();
    });

    it("by withLease completes the slot of work that succeeded, and of no other", async () => {
      const client = clientOf("a");
      const failing = client.withLease(key, { slot: "7" }, () => Promise.reject(new Error("half-way")));
      await expect(failing).rejects.toThrow("half-way");
      expect(await client.withLease(key, { slot: "7" }, () => "done")).toBe("done");
      await expect(client.withLease(key, { slot: "7" }, () => "twice")).rejects.toThrow(SlotDoneError);
    });

    it("by an adopter completes the slot that the handle names", async () => {
      const handle = (await clientOf("a").acquire(key, { slot: "7" })).toJSON();
      await clientOf("b")
        .adopt(JSON.parse(JSON.stringify(handle)))
        .complete();
      await expect(clientOf("c").acquire(key, { slot: "7" })).rejects.toThrow(SlotDoneError);
    });

    it("of a lease that was taken over does not complete its slot", async () => {
      const stale = await clientOf("a").acquire(key, { slot: "7" });
      await clock.advance(pastLease);
      const next = await clientOf("b").acquire(key, { slot: "7" });
      expect(await stale.complete()).toBe(false);
      await next.release();
      expect((await clientOf("c").acquire(key, { slot: "7" })).held).toBe(true);
    });

    it("before lockAtLeastForMs has passed leaves the lock in its cooldown until then", async () => {
      const lease = await clientOf("a").acquire(key, { lockAtLeastForMs: 200 });
      await clock.advance(50);
      expect(await lease.release()).toBe(true);
      expect(await clientOf("c").inspect(key)).toMatchObject({ inCooldown: true, owner: "a" });
      await clock.advance(150 + clockSkewMs - 1);
      expect(await clientOf("b").tryAcquire(key)).toBeUndefined();
      await clock.advance(2);
      expect(await clientOf("b").tryAcquire(key)).toBeDefined();
      expect(types()).not.toContain("takeover");
    });

    it("after lockAtLeastForMs has passed frees the lock at once", async () => {
      const lease = await clientOf("a").acquire(key, { lockAtLeastForMs: 200 });
      await clock.advance(201);
      await lease.release();
      expect(await clientOf("b").tryAcquire(key)).toBeDefined();
    });

    it("happens by itself at the end of a scope", async () => {
      {
        await using lease = await clientOf("a").acquire(key);
        expect(lease.held).toBe(true);
      }
      expect(await clientOf("b").inspect(key)).toBeUndefined();
    });
  });

  describe("a slot that is given as a Date", () => {
    const ahead = (ms: number): Date => new Date(clock.now() + ms);

    it("is refused more than a minute ahead, for it would keep out every run until then; its text may be any", async () => {
      const client = clientOf("a");
      const year = ahead(365 * 24 * 3_600_000);
      for (const call of [client.acquire, client.tryAcquire]) {
        await expect(call.call(client, key, { slot: year })).rejects.toMatchObject({
          name: "SlotNotDueError",
          key,
          slot: year.toISOString(),
        });
      }
      expect(await client.inspect(key)).toBeUndefined();
      await (await client.acquire(key, { slot: ahead(0) })).complete();
      expect(await (await client.acquire(key, { slot: ahead(50_000) })).complete()).toBe(true);
      expect((await client.acquire(key, { slot: year.toISOString() })).slot).toBe(year.toISOString());
    });
  });

  describe("withLease", () => {
    const breakAndTake = async ({ token }: Lease): Promise<Lease> => {
      await adminOf(clientOf("b")).forceRelease(key, { token });
      return await clientOf("b").acquire(key);
    };

    it.each<[string, (lease: Lease) => unknown]>([
      ["goes on to its end", () => undefined],
      ["lets the lock go early", (lease) => lease.release()],
      [
        "is asked to stop",
        async (lease) => {
          await adminOf(clientOf("b")).requestRevocation(key, { token: lease.token });
          await expect(lease.renew()).rejects.toMatchObject({ reason: "revoked" });
        },
      ],
    ])("gives the result of work that %s, and leaves the lock free", async (_, work) => {
      const result = await clientOf("a").withLease(key, {}, async (lease) => {
        await work(lease);
        return "done";
      });
      expect([result, await clientOf("b").inspect(key)]).toEqual(["done", undefined]);
    });

    it("gives the work's own error, and leaves the lock free", async () => {
      const work = clientOf("a").withLease(key, {}, () => Promise.reject(new Error("out of paper")));
      await expect(work).rejects.toThrow("out of paper");
      expect(await clientOf("b").inspect(key)).toBeUndefined();
    });

    it("leaves the slot open where its work let the lock go early", async () => {
      await clientOf("a").withLease(key, { slot: "7" }, (lease) => lease.release());
      expect((await clientOf("b").acquire(key, { slot: "7" })).held).toBe(true);
    });

    it("rejects when the lease did not last as long as the work", async () => {
      const work = clientOf("a").withLease(key, {}, () => clock.freeze(leaseDurationMs));
      await expect(work).rejects.toBeInstanceOf(LeaseLostError);
    });

    it.each<[string, (lease: Lease) => unknown]>([
      ["the next holder has the lock", breakAndTake],
      ["the next holder has had the lock", async (lease) => (await breakAndTake(lease)).release()],
      [
        "its work let go what was the next holder's by then",
        async (lease) => {
          await breakAndTake(lease);
          await lease.release();
        },
      ],
    ])("rejects when its lease was broken and %s, and leaves the slot open", async (_, work) => {
      const client = clientOf("a");
      await expect(client.withLease(key, { slot: "7" }, work)).rejects.toMatchObject({
        code: "LEASE_LOST",
        reason: "taken",
      });
      expect(await client.doneSlot(key)).toBeUndefined();
    });
  });

  describe("heartbeat", () => {
    it("keeps the lease for as long as the work takes", async () => {
      const lease = await clientOf("a").acquire(key, { heartbeat: true });
      for (let beat = 1; beat <= 5; beat += 1) {
        await clock.advance(100);
        await until(() => expect(types().filter((type) => type === "renewed")).toHaveLength(beat));
      }
      expect(lease.held).toBe(true);
      expect(await clientOf("b").tryAcquire(key)).toBeUndefined();
      await lease.release();
      await clock.advance(1_000);
      expect(types().filter((type) => type === "renewed")).toHaveLength(5);
    });

    it("renews many leases of one client together", async () => {
      const client = clientOf("a");
      const leases = await Promise.all(
        Array.from({ length: 60 }, (_, index) => client.acquire(`${key}/${index}`, { heartbeat: true })),
      );
      await clock.advance(100);
      await until(() => expect(types().filter((type) => type === "renewed")).toHaveLength(60));
      expect(leases.every((lease) => lease.remainingMs() > 250)).toBe(true);
    });
  });

  describe("revocation", () => {
    it("reaches the holder in the answer to its next renewal, and the lock is held until it releases", async () => {
      const lease = await clientOf("a").acquire(key);
      expect(
        await adminOf(clientOf("b")).requestRevocation(key, { token: lease.token, reason: "a newer run" }),
      ).toBe(true);
      expect(lease.signal.aborted).toBe(false);
      await expect(lease.renew()).rejects.toMatchObject({ reason: "revoked" });
      expect(lease.signal.reason).toMatchObject({
        reason: "revoked",
        message: expect.stringContaining("a newer run"),
      });
      expect(await clientOf("b").tryAcquire(key)).toBeUndefined();
      expect(await lease.release()).toBe(true);
      const next = await clientOf("b").acquire(key);
      await next.renew();
      expect(next.held).toBe(true);
    });

    it("does not hit a later holder", async () => {
      const first = await clientOf("a").acquire(key);
      await first.release();
      const second = await clientOf("b").acquire(key);
      const told: unknown[] = [];
      const onRefused = (holder: unknown) => told.push(holder);
      const admin = adminOf(clientOf("c"));
      expect(await admin.requestRevocation(key, { token: first.token, onRefused })).toBe(false);
      expect(told).toMatchObject([{ token: second.token, owner: "b" }]);
      await second.renew();
      expect(await admin.requestRevocation(key, { token: second.token, onRefused })).toBe(true);
      expect(told).toHaveLength(1);
    });
  });

  describe("forceRelease", () => {
    it("breaks the lease that it names, and its holder learns of it at its next renewal", async () => {
      const lease = await clientOf("a").acquire(key);
      expect(await adminOf(clientOf("admin")).forceRelease(key, { token: lease.token })).toBe(true);
      expect(await clientOf("b").inspect(key)).toBeUndefined();
      await expect(lease.renew()).rejects.toMatchObject({ reason: "released" });
      expect(await lease.release()).toBe(false);
    });

    it("does not hit a later holder", async () => {
      const first = await clientOf("a").acquire(key);
      await first.release();
      const second = await clientOf("b").acquire(key);
      expect(await adminOf(clientOf("admin")).forceRelease(key, { token: "somebody" })).toBe(false);
      expect(await clientOf("c").inspect(key)).toMatchObject({ token: second.token });
    });
  });

  describe("adopt", () => {
    it("carries a lease on in another process", async () => {
      const lease = await clientOf("a").acquire(key);
      const adopted = clientOf("b").adopt(JSON.parse(JSON.stringify(lease)));
      expect(adopted).toMatchObject({
        key,
        owner: "a",
        token: lease.token,
        fencingToken: lease.fencingToken,
        held: true,
      });
      await adopted.renew();
      await lease.renew();
      await adopted.renew();
      expect(await adopted.release()).toBe(true);
      await expect(lease.renew()).rejects.toMatchObject({ reason: "released" });
    });

    it("protects nothing with an old handle until a renewal has shown that nobody took the lock", async () => {
      const lease = await clientOf("a").acquire(key);
      const handle = lease.toJSON();
      clock.freeze(pastLease);
      const adopted = clientOf("b").adopt(handle);
      expect(adopted.held).toBe(false);
      expect(adopted.signal.aborted).toBe(false);
      await adopted.renew();
      expect(adopted.held).toBe(true);
    });

    it("keeps the holder's lockAtLeastForMs", async () => {
      const lease = await clientOf("a").acquire(key, { lockAtLeastForMs: 250 });
      await clientOf("b").adopt(lease.toJSON()).release();
      expect(await clientOf("c").inspect(key)).toMatchObject({ inCooldown: true });
    });
  });

  describe("reentrancy", () => {
    const again = { owner: "request-1", reentrant: true };

    it("lets a retried invocation of the same owner resume at once, and fences the earlier one off", async () => {
      const first = await clientOf("a").acquire(key, again);
      const retried = await clientOf("b").acquire(key, again);
      expect(retried.fencingToken).toBe(first.fencingToken + 1);
      await expect(first.renew()).rejects.toMatchObject({ reason: "taken" });
      expect(events.find((event) => event.type === "takeover")).toMatchObject({ reason: "sameOwner" });
      expect(await clientOf("c").inspect(key)).toMatchObject({ owner: "request-1", reentrant: true });
      expect(await clientOf("b").tryAcquire(key, { ...again, owner: "request-2" })).toBeUndefined();
    });

    it("is not passed on to the next holder of the lock, whoever that takes it from", async () => {
      await (await clientOf("a").acquire(key, { ...again, data: { is: "reentrant" } })).release();
      const plain = await clientOf("a").acquire(key, { owner: "request-1" });
      expect(await clientOf("b").tryAcquire(key, again)).toBeUndefined();
      await plain.release();
      await clientOf("a").acquire(key, again);
      await clock.advance(pastLease);
      await clientOf("b").acquire(key, { owner: "request-1", data: { is: "plain" } });
      expect(await clientOf("c").tryAcquire(key, again)).toBeUndefined();
    });
  });

  describe("inspect and list", () => {
    it("inspect shows the holder, also when its lease has expired, and nothing for a free lock", async () => {
      expect(await clientOf("b").inspect(key)).toBeUndefined();
      const lease = await clientOf("a").acquire(key);
      const { owner, token, fencingToken, acquiredAt, expiresAt } = lease;
      const record = {
        key,
        owner,
        token,
        fencingToken,
        acquiredAt,
        expiresAt,
        leaseDurationMs,
        inCooldown: false,
      };
      expect(await clientOf("b").inspect(key)).toMatchObject(record);
      await clock.advance(pastLease);
      expect(await clientOf("b").inspect(key)).toMatchObject(record);
    });

    it("list finds the held locks under a prefix", async () => {
      const client = clientOf("a");
      const leases = await Promise.all([1, 2, 3].map((n) => client.acquire(`${key}/in/${n}`)));
      await client.acquire(`${key}/out`);
      await leases[2]?.release();
      const found: LeaseRecord[] = [];
      for await (const record of adminOf(client).list({ prefix: `${key}/in/` })) found.push(record);
      expect(found.map((record) => record.key).sort()).toEqual([`${key}/in/1`, `${key}/in/2`]);
    });

    it("inspectAll shows every lease under a key, whatever primitive it belongs to", async () => {
      const client = clientOf("a");
      await client.acquire(key);
      await new Semaphore(client, key, { permits: 2 }).acquire();
      await new ReadWriteLock(client, key).read();
      await (await new Semaphore(client, `${key}/other`, { permits: 2 }).acquire()).release();
      const places = (await adminOf(clientOf("admin")).inspectAll(key)).map(({ sortKey }) => sortKey);
      expect(places.sort()).toEqual(["lease", "read-write", "semaphore"]);
      expect(await adminOf(client).inspectAll(`${key}/other`)).toEqual([]);
    });

    it("list with all finds the leases of the other primitives, too, with a prefix and without", async () => {
      const client = clientOf("a");
      await new Semaphore(client, key, { permits: 1 }).acquire();
      const placesOf = async (options: object): Promise<string[]> => {
        const places: string[] = [];
        for await (const { key: found, sortKey } of adminOf(client).list(options))
          if (found === key) places.push(sortKey);
        return places;
      };
      expect(await placesOf({ prefix: key })).toEqual([]);
      expect(await placesOf({ prefix: key, all: true })).toEqual(["semaphore"]);
      expect(await placesOf({ all: true })).toEqual(["semaphore"]);
    });

    it("a lease of another primitive is inspected, asked to stop and broken by its sort key", async () => {
      const permit = await new Semaphore(clientOf("a"), key, { permits: 1 }).acquire();
      const admin = clientOf("admin");
      const [found] = await adminOf(admin).inspectAll(key);
      const sortKey = found?.sortKey ?? "";
      const { token } = permit;
      expect(await adminOf(admin).inspect(key, { sortKey })).toMatchObject({ token, owner: "a" });
      expect(await adminOf(admin).requestRevocation(key, { token })).toBe(false);
      expect(await adminOf(admin).requestRevocation(key, { token, sortKey, reason: "maintenance" })).toBe(
        true,
      );
      await expect(permit.renew()).rejects.toMatchObject({ reason: "revoked" });
      expect(await adminOf(admin).forceRelease(key, { token })).toBe(false);
      expect(await adminOf(admin).forceRelease(key, { token, sortKey })).toBe(true);
      expect(await adminOf(admin).inspectAll(key)).toEqual([]);
      expect(await permit.release()).toBe(false);
    });

    it("list goes through every page", async () => {
      const client = clientOf("a");
      const owned = Array.from({ length: 620 }, (_, index) => `${key}/page/${index}`);
      for (let start = 0; start < owned.length; start += 40) {
        await Promise.all(owned.slice(start, start + 40).map((name) => client.acquire(name)));
      }
      const found = new Set<string>();
      for await (const record of adminOf(client).list({ prefix: `${key}/page/` })) found.add(record.key);
      expect(found.size).toBe(620);
    });

    it("list by pages goes on in another process where one has stopped, also where a megabyte holds few", async () => {
      const data = "x".repeat(380_000);
      const owned = Array.from({ length: 7 }, (_, index) => `${key}/large/${index}`);
      await Promise.all(owned.map((name) => clientOf("a").acquire(name, { data })));
      const found: string[] = [];
      let after: ListCursor | undefined;
      do {
        // Each page by a process of its own, which knows the cursor from JSON.
        const options = { prefix: `${key}/large/`, ...(after === undefined ? {} : { after }) };
        const { value: page } = await adminOf(clientOf("b")).listPages(options).next();
        if (page === undefined) throw new Error("no page");
        found.push(...page.leases.map((lease) => lease.key));
        after = page.next === undefined ? undefined : JSON.parse(JSON.stringify(page.next));
      } while (after !== undefined);
      expect(found.sort()).toEqual(owned);
    });
  });

  it("keys are taken as they are written", async () => {
    const odd = [`${key} with spaces`, `${key}/ünïcödé/🔒`, `${key}"';--`, `${key}\u0000\n`];
    for (const name of odd) {
      await using lease = await clientOf("a").acquire(name);
      expect(await clientOf("b").inspect(name)).toMatchObject({ key: name, token: lease.token });
    }
  });

  it("a judgement by observation alone waits a whole lease and a margin, by its own monotonic clock", async () => {
    const dead = await clientOf("a").acquire(key);
    const impatient = clientOf("b", { clockSkewMs: Number.POSITIVE_INFINITY });
    await clock.advance(leaseDurationMs);
    expect(await impatient.tryAcquire(key)).toBeUndefined();
    await clock.advance(watchedMs(leaseDurationMs) - 1);
    expect(await impatient.tryAcquire(key)).toBeUndefined();
    await clock.advance(1);
    const next = await impatient.tryAcquire(key);
    expect(next?.fencingToken).toBe(dead.fencingToken + 1);
    expect(events.find((event) => event.type === "takeover")).toMatchObject({ reason: "observation" });
  });
}
