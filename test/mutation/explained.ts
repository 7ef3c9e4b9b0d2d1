/** The mutants that no test can see, or should, and why. Each is named as `npm run mutation` names it. */

export interface Explained {
  readonly why: string;
  /** Their keys: the file, the line, what is replaced, and by what. */
  readonly mutants: readonly string[];
}

export const explained: readonly Explained[] = [
  {
    why: "The compiler asks for it, and it is always so: a match of an expression with one group has that group.",
    mutants: [
      "packages/client/src/expressions.ts: if (name !== undefined) names[placeholder] = name;: name !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it, to know the type; the other conditions hold for nothing else.",
    mutants: [
      'packages/client/src/store/item-values.ts: const isInRange = typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most;: typeof value === "number" ⇒ true',
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: what has an entry in the heap has a place there, and a right child a left one.",
    mutants: [
      "packages/client/src/protocol/priority-queue.ts: if (last === undefined || last === entry) return;: last === undefined ⇒ false",
      "packages/client/src/protocol/priority-queue.ts: const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;: left !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it: to delete what is not there does nothing.",
    mutants: [
      "packages/client/src/protocol/priority-queue.ts: if (item !== undefined) this.delete(item);: item !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: an estimate, and a count of uses, come of a record that was seen.",
    mutants: [
      "packages/client/src/protocol/hold-estimate.ts: if (this.#last !== undefined && uses > 0) {: this.#last !== undefined ⇒ true",
      "packages/client/src/protocol/hold-estimate.ts: if (this.#estimate === undefined || this.#last === undefined) return undefined;: this.#last === undefined ⇒ false",
    ],
  },
  {
    why: "A share of nothing is nothing, whichever it is.",
    mutants: [
      "packages/client/src/protocol/hold-estimate.ts: const share = error < 0 ? shareOfShorter : shareOfLonger;: error < 0 ⇒ error <= 0",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: as many leases are won as were asked for.",
    mutants: [
      'packages/client/src/protocol/reentrant-leases.ts: if (lease === undefined) throw new Error("nothing was won");: lease === undefined ⇒ false',
      'packages/client/src/protocol/reentrant-leases.ts: if (lease === undefined) throw new Error("nothing was won");: throw new Error("nothing was won"); ⇒ ;',
      "packages/client/src/protocol/reentrant-leases.ts: if (lease === undefined) continue;: lease === undefined ⇒ false",
      'packages/client/src/protocol/reentrant-leases.ts: return wishes.flatMap((wish) => held.get(wish) ?? []);: [] ⇒ ["Stryker was here"]',
    ],
  },
  {
    why: "The compiler asks for it: what is not known confirms nothing, and of no cooldown nothing is left.",
    mutants: [
      "packages/client/src/protocol/held-lease.ts: if (belief !== undefined) this.deadline.confirm(belief, record.expiresAt);: belief !== undefined ⇒ true",
      "packages/client/src/protocol/held-lease.ts: if (cooldownUntil === undefined) return 0;: cooldownUntil === undefined ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it: undefined comes neither before nor after a slot.",
    mutants: [
      "packages/client/src/protocol/acquire-attempt.ts: if (slot !== undefined && done !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);: slot !== undefined && done !== undefined ⇒ true",
      "packages/client/src/protocol/acquire-attempt.ts: if (slot !== undefined && done !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);: slot !== undefined && done !== undefined ⇒ slot !== undefined || done !== undefined",
      "packages/client/src/protocol/acquire-attempt.ts: if (slot !== undefined && done !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);: slot !== undefined ⇒ true",
      "packages/client/src/protocol/acquire-attempt.ts: if (slot !== undefined && done !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);: done !== undefined ⇒ true",
    ],
  },
  {
    why: "It spares a look at the clock: a request that waits later counts from its own start at least.",
    mutants: [
      "packages/client/src/protocol/request-gate.ts: if (isServed && (this.#waiting?.size ?? 0) > 0) this.#servedAt = this.#clock.monotonic();: (this.#waiting?.size ?? 0) > 0 ⇒ true",
      "packages/client/src/protocol/request-gate.ts: if (isServed && (this.#waiting?.size ?? 0) > 0) this.#servedAt = this.#clock.monotonic();: (this.#waiting?.size ?? 0) > 0 ⇒ (this.#waiting?.size ?? 0) >= 0",
    ],
  },
  {
    why: "The compiler asks for it: what is taken from the queue shows that there is one.",
    mutants: [
      "packages/client/src/protocol/request-gate.ts: this.#waiting?.delete(next);: this.#waiting?.delete ⇒ this.#waiting.delete",
    ],
  },
  {
    why: "Only the compiler tells a property that is undefined from one that is missing.",
    mutants: [
      "packages/client/src/protocol/lease-form.ts: const details = { waitedMs: call.waitMs, waiting, isOwn, ...(what === undefined ? {} : { what }) };: what === undefined ⇒ false",
    ],
  },
  {
    why: "No two entries have the same number.",
    mutants: [
      "packages/client/src/protocol/priority-queue.ts: return one.priority < other.priority || (one.priority === other.priority && one.order < other.order);: one.order < other.order ⇒ one.order <= other.order",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: what is judged was noted with the same answer.",
    mutants: [
      "packages/client/src/protocol/expiry-detector.ts: const unchangedForMs = seen.lastSeen - (seen.leases.get(record.token)?.since ?? seen.lastSeen);: seen.leases.get(record.token)?.since ⇒ seen.leases.get(record.token).since",
    ],
  },
  {
    why: "Undefined counts as false.",
    mutants: [
      "packages/client/src/protocol/lease-memory.ts: isInUse: (value: T) => boolean = () => false,: () => false ⇒ () => undefined",
    ],
  },
  {
    why: "A function that returns nothing returns undefined as well.",
    mutants: [
      "packages/client/src/protocol/wait-loop.ts: protected get holds(): HoldWatch | undefined {: { return undefined; } ⇒ {}",
      "packages/client/src/store/item-values.ts: } catch {: { // Ignored: JSON.parse throws only because the text is not JSON. return undefined; } ⇒ {}",
    ],
  },
  {
    why: "The first reading replaces it, whatever it is: it agrees with no clock.",
    mutants: [
      "packages/client/src/time/clock.ts: let last = { uptime: 0, monotonic: Number.NEGATIVE_INFINITY, wall: 0 };: { uptime: 0, monotonic: Number.NEGATIVE_INFINITY, wall: 0 } ⇒ {}",
    ],
  },
  {
    why: "It makes a difference only where two bounds of the service's time are equal to the last bit: then either is right.",
    mutants: [
      "packages/client/src/time/service-clock.ts: this.#bounds = lowerAt(best, now) > upperAt(best, now) ? newest : best;: lowerAt(best, now) > upperAt(best, now) ⇒ lowerAt(best, now) >= upperAt(best, now)",
      "packages/client/src/time/service-clock.ts: lower: (lowerAt(newer, now) >= lowerAt(older, now) ? newer : older).lower,: lowerAt(newer, now) >= lowerAt(older, now) ⇒ lowerAt(newer, now) > lowerAt(older, now)",
      "packages/client/src/time/service-clock.ts: upper: (upperAt(newer, now) <= upperAt(older, now) ? newer : older).upper,: upperAt(newer, now) <= upperAt(older, now) ⇒ upperAt(newer, now) < upperAt(older, now)",
    ],
  },
];
