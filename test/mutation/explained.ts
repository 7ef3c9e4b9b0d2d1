/** The mutants that no test can see, or should, and why. Each is named as `npm run evidence -- mutation` names it. */

export interface Explained {
  readonly why: string;
  /** Their keys: the file, the line, what is replaced, and by what. */
  readonly mutants: readonly string[];
}

export const explained: readonly Explained[] = [
  {
    why: "Tests run on Linux alone.",
    mutants: [
      'packages/client/src/base/clock.ts: ...(process.platform === "linux" ? { uptime: sparingUptime(() => uptime() * 1000) } : {}),: process.platform === "linux" ⇒ true',
    ],
  },
  {
    why: "Seen by tests that load a second copy of the package (repository/error-copies), or items of earlier releases (upgrades).",
    mutants: [
      'packages/client/src/core/client.ts: brandClass(LeaseClient, "LeaseClient");: "LeaseClient" ⇒ ""',
      'packages/client/src/primitives/seats/seat.ts: export const permitsOfAttribute = "permitsOf";: "permitsOf" ⇒ ""',
    ],
  },
  {
    why: "What is not known is neither above nor below the allowance.",
    mutants: [
      "packages/client/src/core/core.ts: const agreeing = { minMs: 0, maxMs: 0 };: { minMs: 0, maxMs: 0 } ⇒ {}",
    ],
  },
  {
    why: "It spares work: what is made anew says the same.",
    mutants: [
      "packages/client/src/statements/statement.ts: this.#longer.set(part, longer);: this.#longer.set(part, longer); ⇒ ;",
      "packages/client/src/statements/statement.ts: if (count > mostKept) return made(count);: count > mostKept ⇒ false",
      "packages/client/src/statements/statement.ts: if (count > mostKept) return made(count);: count > mostKept ⇒ count >= mostKept",
    ],
  },
  {
    why: "The compiler asks for it: nothing fills nothing in.",
    mutants: [
      "packages/client/src/statements/statement.ts: if (values !== undefined) fillIn(this.values, values);: values !== undefined ⇒ true",
      "packages/client/src/statements/statement.ts: if (names !== undefined) {: names !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it: a difference to what is not known is no number, and no number is above zero.",
    mutants: [
      "packages/client/src/core/acquire.ts: const leftMs = latest === undefined ? 0 : record.expiresAt - latest - times.clockSkewMs;: latest === undefined ⇒ false",
    ],
  },
  {
    why: "A client without a store has a table's name: its options were checked.",
    mutants: [
      'packages/client/src/core/client.ts: const store = given.store ?? makeStore(given.tableName ?? "", { clock, randomness, dynamodb });: "" ⇒ "Stryker was here!"',
    ],
  },
  {
    why: "What is no function is refused as work in either case.",
    mutants: [
      'packages/client/src/core/client.ts: const isWorkSecond = typeof optionsOrWork === "function" && workAfterOptions === undefined;: typeof optionsOrWork === "function" ⇒ true',
    ],
  },
  {
    why: "It spares the making of an event that nobody hears.",
    mutants: [
      "packages/client/src/core/held-lease.ts: if (!this.core.hears(told.type)) return;: !this.core.hears(told.type) ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it: a heap has no right child without a left one.",
    mutants: [
      "packages/client/src/base/priority-queue.ts: const child = right !== undefined && left !== undefined && comesBefore(right, left) ? right : left;: left !== undefined ⇒ true",
    ],
  },
  {
    why: "No two entries have the same order.",
    mutants: [
      "packages/client/src/base/priority-queue.ts: return one.priority < other.priority || (one.priority === other.priority && one.order < other.order);: one.order < other.order ⇒ one.order <= other.order",
    ],
  },
  {
    why: "Nothing counts as one waiter, and a strategy without a number of tries has none.",
    mutants: [
      "packages/client/src/base/retry.ts: crowdNow: () => number = () => 1,: () => 1 ⇒ () => undefined",
      'packages/client/src/base/retry.ts: if (retry.strategy !== "untilExpiry" && attempt > (retry.maxRetries ?? Number.POSITIVE_INFINITY)): retry.strategy !== "untilExpiry" ⇒ true',
      'packages/client/src/base/retry.ts: if (retry.strategy !== "untilExpiry" && attempt > (retry.maxRetries ?? Number.POSITIVE_INFINITY)): "untilExpiry" ⇒ ""',
    ],
  },
  {
    why: "Nothing asks an adopted lock whether it is reentrant or in a cooldown; a handle of a seat says the first.",
    mutants: [
      "packages/client/src/base/handle.ts: const { reentrant = false, data, ...taken } = seat ?? {};: false ⇒ true",
      "packages/client/src/base/handle.ts: const lease = { ...held, sortKey, inCooldown: false, revocation: undefined, reentrant, data };: false ⇒ true",
    ],
  },
  {
    why: "The word is compared with the other one alone: any third word does.",
    mutants: [
      'packages/client/src/core/wait-loop.ts: const end = await this.#begin(shared, "try");: "try" ⇒ ""',
      'packages/client/src/core/wait-loop.ts: const end = await this.#begin(shared, "look");: "look" ⇒ ""',
    ],
  },
  {
    why: "It spares the making of a message that nobody hears.",
    mutants: [
      "packages/client/src/core/work-trace.ts: if (!hasSubscribers(workChannel)) return work();: !hasSubscribers(workChannel) ⇒ false",
    ],
  },
  {
    why: "It frees memory: what has gone on is neither in the queue nor waited for.",
    mutants: ["packages/client/src/core/request-gate.ts: ignore();: ignore(); ⇒ ;"],
  },
  {
    why: "The compiler asks for it: only seats come here, and they have one.",
    mutants: [
      "packages/client/src/core/held-lease.ts: this.form.confirmed?.(item);: this.form.confirmed?.(item) ⇒ this.form.confirmed(item) (2)",
    ],
  },
  {
    why: "It only frees memory: a lease that has ended has no time left, and is not shared.",
    mutants: [
      "packages/client/src/core/sharing.ts: lease.onEnd(() => this.#entries.delete(id));: () => this.#entries.delete(id) ⇒ () => undefined",
    ],
  },
  {
    why: "The compiler asks for it: no slot that is done is after what is undefined.",
    mutants: [
      "packages/client/src/core/attempt.ts: if (slot !== undefined && done >= slot) throw new SlotDoneError(key, slot, done);: slot !== undefined ⇒ true",
    ],
  },
  {
    why: "Leases of one key and one owner that may be shared differ in their share key already.",
    mutants: [
      "packages/client/src/core/sharing.ts: return JSON.stringify([key, sortKey, shareKey, owner]);: [key, sortKey, shareKey, owner] ⇒ [key, shareKey, owner]",
    ],
  },
  {
    why: "A wait of no time ends at once.",
    mutants: [
      "packages/client/src/core/sharing.ts: const hasEnded = leftMs > 0 && (await settles(this.#clock, all, leftMs, patience.signal));: leftMs > 0 ⇒ true",
      "packages/client/src/core/sharing.ts: const hasEnded = leftMs > 0 && (await settles(this.#clock, all, leftMs, patience.signal));: leftMs > 0 ⇒ leftMs >= 0",
    ],
  },
  {
    why: "Nothing counts as one waiter, and as no news.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: protected get crowd(): number {: { return 1; } ⇒ {}",
      "packages/client/src/core/wait-loop.ts: protected get hasNews(): boolean {: { return false; } ⇒ {}",
    ],
  },
  {
    why: "The compiler asks for it: every call has a signal here, and news has arrived.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: signal?.throwIfAborted();: signal?.throwIfAborted ⇒ signal.throwIfAborted",
      'packages/client/src/core/wait-loop.ts: if (news !== undefined && "blocked" in news) return news.blocked;: news !== undefined ⇒ true',
      "packages/client/src/core/wait-loop.ts: throw news?.error;: news?.error ⇒ news.error",
    ],
  },
  {
    why: "The mutation run ignores rejections that nobody handles, which fail every other run.",
    mutants: [
      "packages/client/src/core/together.ts: if (lease === undefined) break;: lease === undefined ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it: to delete what is not there does nothing.",
    mutants: [
      "packages/client/src/base/priority-queue.ts: if (item !== undefined) this.delete(item);: item !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: an estimate, and a count of uses, come of a record that was seen.",
    mutants: [
      "packages/client/src/core/hold-estimate.ts: if (this.#last !== undefined && uses > 0) {: this.#last !== undefined ⇒ true",
      "packages/client/src/core/hold-estimate.ts: if (this.#estimate === undefined || this.#last === undefined) return undefined;: this.#last === undefined ⇒ false",
    ],
  },
  {
    why: "A share of nothing is nothing, whichever it is.",
    mutants: [
      "packages/client/src/core/hold-estimate.ts: const share = error < 0 ? shareOfShorter : shareOfLonger;: error < 0 ⇒ error <= 0",
    ],
  },
  {
    why: "The compiler asks for it: what is not known confirms nothing, and of no cooldown nothing is left.",
    mutants: [
      "packages/client/src/core/held-lease.ts: if (belief !== undefined) this.confirm(belief, record.expiresAt);: belief !== undefined ⇒ true",
      "packages/client/src/core/held-lease.ts: if (this.#cooldownUntil === undefined) return 0;: this.#cooldownUntil === undefined ⇒ false",
    ],
  },
  {
    why: "It spares a look at the clock: a request that waits later counts from its own start at least.",
    mutants: [
      "packages/client/src/core/request-gate.ts: if (isServed && (this.#waiting?.size ?? 0) > 0) this.#servedAt = this.#clock.monotonic();: (this.#waiting?.size ?? 0) > 0 ⇒ true",
      "packages/client/src/core/request-gate.ts: if (isServed && (this.#waiting?.size ?? 0) > 0) this.#servedAt = this.#clock.monotonic();: (this.#waiting?.size ?? 0) > 0 ⇒ (this.#waiting?.size ?? 0) >= 0",
    ],
  },
  {
    why: "The compiler asks for it: what is taken from the queue shows that there is one.",
    mutants: [
      "packages/client/src/core/request-gate.ts: this.#waiting?.delete(next);: this.#waiting?.delete ⇒ this.#waiting.delete",
    ],
  },
  {
    why: "Only the compiler tells a property that is undefined from one that is missing.",
    mutants: [
      "packages/client/src/core/form.ts: const details = { waitedMs: call.waitMs, waiting, isOwn, ...(what === undefined ? {} : { what }) };: what === undefined ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: what is judged was noted with the same answer.",
    mutants: [
      "packages/client/src/core/expiry-detector.ts: const unchangedForMs = seen.lastSeen - (seen.leases.get(record.token)?.since ?? seen.lastSeen);: seen.leases.get(record.token)?.since ⇒ seen.leases.get(record.token).since",
    ],
  },
  {
    why: "Undefined counts as false.",
    mutants: [
      "packages/client/src/core/lease-memory.ts: isInUse: (value: T) => boolean = () => false,: () => false ⇒ () => undefined",
      "packages/client/src/base/handle.ts: () => false,: () => false ⇒ () => undefined",
    ],
  },
  {
    why: "A function that returns nothing returns undefined as well.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: protected get holds(): HoldWatch | undefined {: { return undefined; } ⇒ {}",
      "packages/client/src/base/item-values.ts: } catch {: { // Ignored: JSON.parse throws only because the text is not JSON. return undefined; } ⇒ {}",
    ],
  },
  {
    why: "The first reading replaces it, whatever it is: it agrees with no clock.",
    mutants: [
      "packages/client/src/base/clock.ts: let last = { uptime: 0, monotonic: Number.NEGATIVE_INFINITY, wall: 0 };: { uptime: 0, monotonic: Number.NEGATIVE_INFINITY, wall: 0 } ⇒ {}",
    ],
  },
  {
    why: "It makes a difference only where two times are equal to the last bit: then either is right.",
    mutants: [
      "packages/client/src/base/service-clock.ts: lower: (lowerAt(newer, now) >= lowerAt(older, now) ? newer : older).lower,: lowerAt(newer, now) >= lowerAt(older, now) ⇒ lowerAt(newer, now) > lowerAt(older, now)",
      "packages/client/src/base/service-clock.ts: return lowerAt(one, now) <= steadyUpperAt(other, now) && lowerAt(other, now) <= steadyUpperAt(one, now);: lowerAt(one, now) <= steadyUpperAt(other, now) ⇒ lowerAt(one, now) < steadyUpperAt(other, now)",
      "packages/client/src/base/service-clock.ts: return lowerAt(one, now) <= steadyUpperAt(other, now) && lowerAt(other, now) <= steadyUpperAt(one, now);: lowerAt(other, now) <= steadyUpperAt(one, now) ⇒ lowerAt(other, now) < steadyUpperAt(one, now)",
      "packages/client/src/base/service-clock.ts: at.wall < upperAt(bounds, at): at.wall < upperAt(bounds, at) ⇒ at.wall <= upperAt(bounds, at)",
      "packages/client/src/core/wait-loop.ts: if (blocked.claimableAt <= this.core.clock.monotonic()) return;: blocked.claimableAt <= this.core.clock.monotonic() ⇒ blocked.claimableAt < this.core.clock.monotonic()",
      "packages/client/src/base/service-clock.ts: upper: (upperAt(newer, now) <= upperAt(older, now) ? newer : older).upper,: upperAt(newer, now) <= upperAt(older, now) ⇒ upperAt(newer, now) < upperAt(older, now)",
    ],
  },
  {
    why: "It spares work: a copy of nothing, an event that nobody hears.",
    mutants: [
      "packages/client/src/statements/statement.ts: const names = this.names === undefined ? own : { ...own, ...this.names };: this.names === undefined ⇒ false",
      'packages/client/src/core/acquire.ts: if (core.hears("acquired")): core.hears("acquired") ⇒ true',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a source.
      "packages/client/src/core/core.ts: return this.#listeners !== undefined || hasSubscribers(`leasehold:${type}`);: this.#listeners !== undefined || hasSubscribers(`leasehold:${type}`) ⇒ true",
    ],
  },
  {
    why: "Tests that do not judge mutants see it: of clones of a process, and of workflows, which write no mark of their own clock.",
    mutants: [
      "packages/client/src/base/clock.ts: token: () => randomUUID({ disableEntropyCache: true }),: { disableEntropyCache: true } ⇒ {}",
      "packages/client/src/base/clock.ts: token: () => randomUUID({ disableEntropyCache: true }),: true ⇒ false",
      "packages/client/src/statements/lock.ts: if (cooldown.ownClock !== undefined) write.and(cooldown.ownClock ? closedByOwnClock : notByOwnClock);: cooldown.ownClock !== undefined ⇒ true",
    ],
  },
  {
    why: "Every word but `native` comes to the same.",
    mutants: [
      'packages/client/src/core/client.ts: const format = dynamodb !== undefined && isDocumentClient(dynamodb) ? "native" : "attributeValue";: "attributeValue" ⇒ ""',
    ],
  },
  {
    why: "Single flight, which alone calls it, asks for no wait.",
    mutants: [
      "packages/client/src/core/client.ts: const call = { ...callFor(core, key, options, true), sortKey };: true ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it: a waiter hears others only once it sleeps, a cut comes only during a call, and both bounds of the time are known or neither is.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: this.#sleep?.wake();: this.#sleep?.wake ⇒ this.#sleep.wake",
      "packages/client/src/core/held-lease.ts: this.#call?.cut(this.#reason);: this.#call?.cut ⇒ this.#call.cut",
      "packages/client/src/base/service-clock.ts: if (lower === undefined || upper === undefined) return undefined;: lower === undefined || upper === undefined ⇒ lower === undefined && upper === undefined",
      "packages/client/src/base/service-clock.ts: if (lower === undefined || upper === undefined) return undefined;: lower === undefined ⇒ false",
      "packages/client/src/base/service-clock.ts: if (lower === undefined || upper === undefined) return undefined;: upper === undefined ⇒ false",
    ],
  },
  {
    why: "It comes to the same: before its first sleep a waiter has not joined; an answer without an item, as one that shows room, tells the others nothing; nobody is no holder to tell of; a group reads no lock whose holder's time is over.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: #isListening = false;: false ⇒ true",
      'packages/client/src/core/wait-loop.ts: if ("item" in outcome) shared.tell(outcome.item as Item | undefined);: "item" in outcome ⇒ true',
      "packages/client/src/core/wait-loop.ts: return { ...availability, blockers: blocker === undefined ? [] : [blocker], claimableAt };: blocker === undefined ⇒ false",
      "packages/client/src/core/wait-loop.ts: return false;: false ⇒ true",
    ],
  },
  {
    why: "The callers of a client take turns: those that hear of room too early hear at once who has it.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: if (blocked.claimableAt <= this.core.clock.monotonic()) return;: blocked.claimableAt <= this.core.clock.monotonic() ⇒ false",
    ],
  },
  {
    why: "A claim that its task's own write ends is closed by that, which tells no loss either.",
    mutants: [
      "packages/client/src/core/held-lease.ts: this.#isEnding ||= this.form.endBy === undefined;: this.form.endBy === undefined ⇒ true",
    ],
  },
  {
    why: "It matters in a few steps of promises alone, between a waiter's turn and its request, and costs one look then.",
    mutants: [
      "packages/client/src/core/wait-loop.ts: if (end !== undefined) this.#news = undefined;: end !== undefined ⇒ false",
    ],
  },
  {
    why: "It cuts a renewal short whose store has not heard of its end: with a store that does, the call itself has failed.",
    mutants: [
      "packages/client/src/core/held-lease.ts: if (this.#reason !== undefined) throw this.#reason;: this.#reason !== undefined ⇒ false",
    ],
  },
  {
    why: "No lease has such a token, whatever it is: the caller asks for none.",
    mutants: ['packages/client/src/primitives/seats/seat-item.ts: token: "",: "" ⇒ "Stryker was here!"'],
  },
  {
    why: "What follows comes to the same: a kind that there is none of is refused, as a kind that is missing.",
    mutants: ['packages/client/src/primitives/seats/seat.ts: : [];: [] ⇒ ["Stryker was here"]'],
  },
  {
    why: "The compiler asks for it, and it is always so: what was confirmed has shown its seat, and a lease among seats has one.",
    mutants: [
      "packages/client/src/primitives/seats/seat-form.ts: this.shownTimeToLive = Number(item?.[attributeNames.timeToLive] ?? 0);: item?.[attributeNames.timeToLive] ⇒ item[attributeNames.timeToLive]",
      'packages/client/src/primitives/seats/seat-form.ts: return seat?.kind !== "intent";: seat?.kind ⇒ seat.kind',
    ],
  },
  {
    why: "The compiler asks for it: no attribute of an item is called undefined.",
    mutants: [
      "packages/client/src/primitives/seats/seat-form.ts: const isExempt = this.exemption !== undefined && item?.[this.exemption] !== undefined;: this.exemption !== undefined ⇒ true",
    ],
  },
  {
    why: "A seat's text goes on after its version: it never equals a version.",
    mutants: [
      'packages/client/src/primitives/seats/seat-writes.ts: const seatNewer: Part = { when: "#Seat < :newSeat" };: "#Seat < :newSeat" ⇒ "#Seat <= :newSeat"',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a source.
      "packages/client/src/primitives/seats/seat-writes.ts: when: `#F${n} = :f${n} AND #S${n} < :s${n}`,: `#F${n} = :f${n} AND #S${n} < :s${n}` ⇒ `#F${n} = :f${n} AND #S${n} <= :s${n}`",
    ],
  },
  {
    why: "A limit below zero counts less than the seats that go, and those are in the counter: nothing meets it.",
    mutants: [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a source.
      "packages/client/src/primitives/seats/seat-writes.ts: const refused = byKind((of) => ({ when: `#${of} <= :most_${of}` }));: `#${of} <= :most_${of}` ⇒ `#${of} < :most_${of}`",
    ],
  },
  {
    why: "It spares a part that says nothing: of no seat, of no mark.",
    mutants: [
      "packages/client/src/primitives/seats/seat-writes.ts: if (gone.length > 0) write.and(seatsGone(gone.length), values, names);: gone.length > 0 ⇒ true",
      "packages/client/src/primitives/seats/seat-writes.ts: if (gone.length > 0) write.and(seatsGone(gone.length), values, names);: gone.length > 0 ⇒ gone.length >= 0",
      "packages/client/src/primitives/seats/seat-writes.ts: if (marks > 0) write.and(marksGone(marks));: marks > 0 ⇒ true",
      "packages/client/src/primitives/seats/seat-writes.ts: if (marks > 0) write.and(marksGone(marks));: marks > 0 ⇒ marks >= 0",
    ],
  },
  {
    why: "It only saves time: what is read from the same item again is the same.",
    mutants: [
      "packages/client/src/primitives/fair/queue.ts: if (item === this.#snapshot.item) return this.#snapshot;: item === this.#snapshot.item ⇒ false",
    ],
  },
  {
    why: "Who asks counts only where it may come back to its own lease, and a check-in never does: undefined counts as false.",
    mutants: [
      "packages/client/src/primitives/fair/check-ins.ts: this.#availability = this.judge(item, { owner: this.#owner, resumes: false }, this.core.detector);: { owner: this.#owner, resumes: false } ⇒ {}",
    ],
  },
  {
    why: "A lease of a check-in stands for no slot that could be recorded.",
    mutants: [
      "packages/client/src/primitives/fair/check-ins.ts: if ((await this.#held(mine, mine.leaseDurationMs).release(false)).wasOurs) return;: false ⇒ true",
    ],
  },
  {
    why: "A lock counts who asks and not for what, and among seats every word that names no kind comes to the same.",
    mutants: [
      'packages/client/src/primitives/fair/queue-caller.ts: const asked = asking.map(({ shape = "" }) => shape);: "" ⇒ "Stryker was here!"',
      'packages/client/src/primitives/fair/queue-caller.ts: const shapes = [first?.shape ?? "", this.form.shape ?? ""];: "" ⇒ "Stryker was here!"',
      'packages/client/src/primitives/fair/queue-caller.ts: const shapes = [first?.shape ?? "", this.form.shape ?? ""];: "" ⇒ "Stryker was here!" (2)',
    ],
  },
  // Of the package jobs.
  {
    why: "The compiler asks for it: a task without a key waits for no key, and none is busy by that name.",
    mutants: [
      "packages/jobs/src/tasks/task-finder.ts: else if (key !== undefined && tried.has(sortKey) && isBusy(key)) this.block(key, item);: key !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: a claim that is granted shows its item, and so does a refusal.",
    mutants: [
      "packages/jobs/src/runs/run-form.ts: const remark = item?.[runAttributeNames.remark];: item?.[runAttributeNames.remark] ⇒ item[runAttributeNames.remark]",
      "packages/jobs/src/runs/run-form.ts: this.#attempt = Number(item?.[runAttributeNames.attempt]);: item?.[runAttributeNames.attempt] ⇒ item[runAttributeNames.attempt]",
      "packages/jobs/src/runs/run-form.ts: if (this.progress === item?.[runAttributeNames.progress]) this.progress = undefined;: item?.[runAttributeNames.progress] ⇒ item[runAttributeNames.progress]",
      "packages/jobs/src/tasks/task.ts: if (open?.item === undefined): open?.item ⇒ open.item",
      "packages/jobs/src/tasks/task.ts: if (earlier === undefined) throw this.#lossBy(open?.item);: open?.item ⇒ open.item",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: a run that is at work has a lease.",
    mutants: [
      'packages/jobs/src/runs/run.ts: expiresAt: state === "running" ? record?.expiresAt : undefined,: record?.expiresAt ⇒ record.expiresAt',
    ],
  },
  {
    why: "The compiler asks for it: nothing is before, after or above what is undefined.",
    mutants: [
      "packages/jobs/src/runs/expressions.ts: if (descending) return since !== undefined && slot < since;: since !== undefined ⇒ true",
      "packages/jobs/src/runs/expressions.ts: return until !== undefined && slot >= until;: until !== undefined ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it: an option that is undefined counts as one that is not given.",
    mutants: [
      "packages/jobs/src/runs/slots.ts: return parseScheduleExpression(expression, timeZone === undefined ? {} : { timeZone });: timeZone === undefined ⇒ false",
      "packages/jobs/src/tasks/worker.ts: const waits = retryAfterMs === undefined ? {} : { retryAfterMs };: retryAfterMs === undefined ⇒ false",
    ],
  },
  {
    why: "It only frees memory: a worker that has ended does not look any more, whatever it is told.",
    mutants: [
      "packages/jobs/src/tasks/task-set.ts: forget();: forget(); ⇒ ;",
      "packages/jobs/src/tasks/worker.ts: return () => {: { for (const { listeners, listener } of all) listeners.delete(listener); } ⇒ {}",
      "packages/jobs/src/tasks/worker.ts: for (const { listeners, listener } of all) listeners.delete(listener);: listeners.delete(listener); ⇒ ;",
    ],
  },
  {
    why: "A claim stands for no slot: nobody asks whether one was recorded.",
    mutants: [
      "packages/jobs/src/tasks/task.ts: return { wasOurs: true, isRecorded: false };: false ⇒ true",
      "packages/jobs/src/tasks/task.ts: if (error instanceof TaskLostError) return { wasOurs: false, isRecorded: false };: false ⇒ true (2)",
    ],
  },
  {
    why: "The compiler asks for it: no task waits for a key that is undefined, no claim without a key finds its key busy, and what is not there has no token.",
    mutants: [
      "packages/jobs/src/tasks/task-set.ts: if (serialKey !== undefined) this.#finder.free(serialKey);: serialKey !== undefined ⇒ true",
      "packages/jobs/src/tasks/task-set.ts: if (outcome.isParked && serialKey !== undefined) this.#finder.free(serialKey);: serialKey !== undefined ⇒ true",
      "packages/jobs/src/tasks/task-set.ts: if (serialKey !== undefined && outcome.isKeyBusy) {: serialKey !== undefined ⇒ true",
      'packages/jobs/src/tasks/task.ts: lastReleasedToken(item) === token && item?.[state] === "succeeded" && item[endedAt] === ended.now,: item?.[state] ⇒ item[state]',
    ],
  },
  {
    why: "All that is asked of this result is whether there is one: any other word does.",
    mutants: ['packages/jobs/src/tasks/task.ts: return "succeeded";: "succeeded" ⇒ ""'],
  },
  {
    why: "Undefined counts as false.",
    mutants: [
      "packages/jobs/src/tasks/claim-attempt.ts: const wishes = { reentrant: false, resumes: false, data: undefined, slot: undefined };: { reentrant: false, resumes: false, data: undefined, slot: undefined } ⇒ {}",
      "packages/jobs/src/tasks/claim-attempt.ts: this.#attempt = new Attempt(core, this.#form, {: { key: set, sortKey, owner, leaseDurationMs, ...wishes, } ⇒ { key: set, sortKey, owner, leaseDurationMs }",
    ],
  },
  {
    why: "Only a reentrant lease can be resumed, and a claim is none.",
    mutants: [
      "packages/jobs/src/tasks/claim-attempt.ts: const wishes = { reentrant: false, resumes: false, data: undefined, slot: undefined };: false ⇒ true (2)",
    ],
  },
  {
    why: "The word is compared with itself alone: any other word does.",
    mutants: [
      'packages/jobs/src/runs/run-form.ts: #end: "none" | "withOutcome" | "without" = "none";: "none" ⇒ ""',
      'packages/jobs/src/tasks/task.ts: await this.#end("succeeded", () => this.#finish("succeeded", text));: "succeeded" ⇒ ""',
      'packages/jobs/src/tasks/task.ts: await this.#end("waiting", () => {: "waiting" ⇒ ""',
    ],
  },
  {
    why: "It only frees memory: a call that waits for a try goes on at once when the try has ended.",
    mutants: [
      "packages/jobs/src/runs/attempt.ts: } finally {: { // No other call for the slot has gone on yet: this one is in progress. this.#resuming.delete(slot); } ⇒ {}",
      "packages/jobs/src/runs/attempt.ts: this.#resuming.delete(slot);: this.#resuming.delete(slot); ⇒ ;",
    ],
  },
  {
    why: "What follows comes to the same: null cannot be read, and what was written reads as what was asked for.",
    mutants: [
      'packages/jobs/src/runs/job-runs.ts: check(typeof run === "object" && run !== null, "run", run, "a run as get or runs has given it");: run !== null ⇒ true',
      "packages/jobs/src/runs/skipping.ts: if (applied) return true;: applied ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it: an expiry is known where a record is, and nowhere else.",
    mutants: [
      "packages/jobs/src/runs/skipping.ts: if (seen === undefined || expiry?.reason === undefined) {: seen === undefined ⇒ false",
      "packages/jobs/src/runs/skipping.ts: if (seen === undefined || expiry?.reason === undefined) {: expiry?.reason ⇒ expiry.reason",
    ],
  },
  {
    why: "The compiler asks for it: what is no text is a number or missing, and is no list when it is read as JSON.",
    mutants: [
      'packages/jobs/src/runs/attempt-history.ts: const list = typeof text === "string" ? parsedJson(text)?.value : undefined;: typeof text === "string" ⇒ true',
    ],
  },
  {
    why: "To set what is set already changes nothing.",
    mutants: [
      'packages/jobs/src/runs/expressions.ts: if (needed > Number(write.values[":ttl"])) write.values[":ttl"] = needed;: needed > Number(write.values[":ttl"]) ⇒ needed >= Number(write.values[":ttl"])',
    ],
  },
  {
    why: "It makes a difference only where a slot is as old as that to the millisecond: runs are kept for longer, and either is right.",
    mutants: [
      "packages/jobs/src/runs/scheduling.ts: if (Date.parse(slot) < clock.now() - runs.keepForMs) return;: Date.parse(slot) < clock.now() - runs.keepForMs ⇒ Date.parse(slot) <= clock.now() - runs.keepForMs",
    ],
  },
  {
    why: "Without catchUpMs the range of missed slots is empty: at most it is the millisecond in which the schedule begins.",
    mutants: [
      "packages/jobs/src/runs/scheduling.ts: let catchUpAt = catchUpMs > 0 ? seenUntil : Number.POSITIVE_INFINITY;: catchUpMs > 0 ⇒ true",
      "packages/jobs/src/runs/scheduling.ts: let catchUpAt = catchUpMs > 0 ? seenUntil : Number.POSITIVE_INFINITY;: catchUpMs > 0 ⇒ catchUpMs >= 0",
    ],
  },
  {
    why: "Of two equal times either is the end.",
    mutants: [
      "packages/jobs/src/runs/job-runs.ts: yield* slotsOf({ ...range, until: range.until < now ? range.until : now });: range.until < now ⇒ range.until <= now",
    ],
  },
  {
    why: "Each end of a task by its worker has a time of its own: that of a failure is no success's.",
    mutants: [
      'packages/jobs/src/tasks/task.ts: lastReleasedToken(item) === token && item?.[state] === "succeeded" && item[endedAt] === ended.now,: item?.[state] === "succeeded" ⇒ true',
    ],
  },
  {
    why: "Numbers that fall differ from one another as well.",
    mutants: [
      "packages/jobs/src/tasks/task-finder.ts: this.#fullLooks += 1;: this.#fullLooks += 1 ⇒ this.#fullLooks -= 1",
    ],
  },
  {
    why: "Any read of the job tells the time, also of an item that is not there.",
    mutants: [
      'packages/jobs/src/runs/job-runs.ts: ask: (signal) => this.#core.get({ key: runItemKey(this.job, ""), consistent: false }, { signal }),: "" ⇒ "Stryker was here!"',
    ],
  },
  {
    why: "It makes a difference only where an entry is a day old to the second: then either is right.",
    mutants: [
      'packages/jobs/src/runs/job-registry.ts: when: "(attribute_not_exists(#ttl) OR #ttl < :ifTtl OR #schedule <> :schedule OR #timeZone <> :timeZone)",: "(attribute_not_exists(#ttl) OR #ttl < :ifTtl OR #schedule <> :schedule OR #timeZone <> :timeZone)" ⇒ "(attribute_not_exists(#ttl) OR #ttl <= :ifTtl OR #schedule <> :schedule OR #timeZone <> :timeZone)"',
      'packages/jobs/src/runs/job-registry.ts: when: "(attribute_not_exists(#ttl) OR #ttl < :ifTtl OR #schedule <> :s … e OR attribute_exists(#timeZone))",: "(attribute_not_exists(#ttl) OR #ttl < :ifTtl OR #schedule <> :schedule OR attribute_exists(#timeZone))" ⇒ "(attribute_not_exists(#ttl) OR #ttl <= :ifTtl OR #schedule <> :schedule OR attribute_exists(#timeZone))"',
    ],
  },
  {
    why: "It only has to be long: a worker is woken when one of its tasks ends.",
    mutants: [
      "packages/jobs/src/tasks/worker.ts: const longestWaitMs = 60 * 60 * 1000;: 60 * 60 * 1000 ⇒ 60 * 60 / 1000",
      "packages/jobs/src/tasks/worker.ts: const longestWaitMs = 60 * 60 * 1000;: 60 * 60 ⇒ 60 / 60",
    ],
  },
  {
    why: "A text has no set, and is told of none.",
    mutants: [
      'packages/jobs/src/tasks/worker.ts: for (const listener of waiting.get(core) ?? []) if (listener.set === set) listener.worker.notice();: [] ⇒ ["Stryker was here"]',
    ],
  },
  {
    why: "To add no task sends nothing.",
    mutants: [
      "packages/jobs/src/tasks/task-set.ts: for (let start = 0; start < given.length; start += tasksPerTransaction) {: start < given.length ⇒ start <= given.length",
    ],
  },
  {
    why: "Until a look was in vain, every look is consistent and uses no snapshot.",
    mutants: ["packages/jobs/src/tasks/polled-set.ts: #mustBeSure = false;: false ⇒ true"],
  },
  {
    why: "The lease has its answer already, and gives it whatever is asked for.",
    mutants: [
      "packages/jobs/src/runs/attempt.ts: const { wasOurs = false, isRecorded } = await this.#lease.end(true);: true ⇒ false",
    ],
  },
  {
    why: "A task that has ended refuses to be failed, sends nothing, and has nothing to give up.",
    mutants: [
      "packages/jobs/src/tasks/task-set.ts: if (await task.settled()) return;: await task.settled() ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it: no task asks for the key undefined, and the key of a task that a worker had is busy already.",
    mutants: [
      "packages/jobs/src/tasks/task-finder.ts: if (key !== undefined && readRecord(item) !== undefined) this.#busy.add(key);: key !== undefined ⇒ true",
      "packages/jobs/src/tasks/task-finder.ts: if (isWaiting) taken.add(key);: isWaiting ⇒ true",
    ],
  },
  {
    why: "It only frees memory: where the others are none, none is next.",
    mutants: [
      "packages/jobs/src/tasks/task-finder.ts: if (others.length > 0) this.#blocked.set(key, others);: others.length > 0 ⇒ true",
      "packages/jobs/src/tasks/task-finder.ts: if (others.length > 0) this.#blocked.set(key, others);: others.length > 0 ⇒ others.length >= 0",
    ],
  },
  {
    why: "The next leadership begins after the release of the one before, and all who waited for that release have gone on by then.",
    mutants: [
      "packages/client/src/primitives/leader/leader.ts: if (this.#leadership === leadership) this.#leadership = undefined;: this.#leadership === leadership ⇒ true",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: a client gives each call a signal, which aborts when the client is closed.",
    mutants: [
      "packages/client/src/primitives/fair/queue-waiter.ts: this.#call.signal?.throwIfAborted();: this.#call.signal?.throwIfAborted ⇒ this.#call.signal.throwIfAborted",
      "packages/client/src/primitives/fair/queue-waiter.ts: this.#call.signal?.throwIfAborted();: this.#call.signal?.throwIfAborted ⇒ this.#call.signal.throwIfAborted (2)",
    ],
  },
  {
    why: "The compiler asks for it: what is told of no lease is no event.",
    mutants: [
      "packages/client/src/primitives/fair/queue-waiter.ts: if (blocker !== undefined) this.#onContended(blocker);: blocker !== undefined ⇒ true",
    ],
  },
  {
    why: "A payload that is not there is small enough, and so is any short text in its place.",
    mutants: [
      'packages/client/src/primitives/fair/queue-waiter.ts: checkSize("data", utf8Bytes(call.data ?? ""), queueLimits.dataBytes, " with fair");: "" ⇒ "Stryker was here!"',
    ],
  },
  {
    why: "It makes a difference only where the two are equal to the millisecond: then a ticket lasts, whether this look renews it or the next.",
    mutants: [
      "packages/client/src/primitives/fair/queue-waiter.ts: const isShort = until - this.core.clock.now() < pollMs + renewAheadMs;: until - this.core.clock.now() < pollMs + renewAheadMs ⇒ until - this.core.clock.now() <= pollMs + renewAheadMs",
      "packages/client/src/primitives/fair/queue-waiter.ts: if (own === undefined || freeForMs < freeLookMs || this.#now() < this.#notBefore) return false;: freeForMs < freeLookMs ⇒ freeForMs <= freeLookMs",
      "packages/client/src/primitives/fair/queue-waiter.ts: return isShort && this.newTicket().until - until > pollMs;: this.newTicket().until - until > pollMs ⇒ this.newTicket().until - until >= pollMs",
    ],
  },
  {
    why: "A ticket's text that ends before the flags has none of them, and so has one with any word that is no flag.",
    mutants: [
      'packages/client/src/primitives/fair/queue-ticket.ts: const [since, until, leaseMs, flags = "", shape, ...owner] = text.split(" ");: "" ⇒ "Stryker was here!"',
    ],
  },
  {
    why: "A part of no clauses says nothing.",
    mutants: [
      "packages/client/src/primitives/fair/queue-writes.ts: if (passed.length > 0) without(acquire, passed);: passed.length > 0 ⇒ true",
      "packages/client/src/primitives/fair/queue-writes.ts: if (passed.length > 0) without(acquire, passed);: passed.length > 0 ⇒ passed.length >= 0",
    ],
  },
  // Of several locks together.
  {
    why: "The compiler asks for it, and it is always so: a group has a first lock.",
    mutants: [
      'packages/client/src/primitives/group/acquire-all.ts: super(first?.key ?? keys[0] ?? "", first && { ...first, owner: first.holder }, retryAfterMs, details);: "" ⇒ "Stryker was here!"',
      'packages/client/src/primitives/group/acquire-all.ts: return await untilAborted(wanted[0] ?? "", signal, () =>: "" ⇒ "Stryker was here!"',
      "packages/client/src/primitives/group/group-acquisition.ts: if (record === undefined) return undefined;: record === undefined ⇒ false",
      'packages/client/src/primitives/group/group-acquisition.ts: const [key = ""] = this.#keys;: "" ⇒ "Stryker was here!"',
      "packages/client/src/primitives/group/group-acquisition.ts: if (first !== undefined) lifecycle.remove(first, taken, passed);: first !== undefined ⇒ true",
      "packages/client/src/primitives/group/group-acquisition.ts: if (first === undefined) return;: first === undefined ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: a write that was applied and asked for its item shows it, and what failed was thrown before.",
    mutants: [
      "packages/client/src/primitives/group/group-acquisition.ts: return Number(item?.[attributeNames.fence]) >= this.#leastFence;: item?.[attributeNames.fence] ⇒ item[attributeNames.fence]",
      'packages/client/src/primitives/group/lease-group.ts: return results.every((result) => result.status === "fulfilled" && result.value);: result.status === "fulfilled" ⇒ true',
    ],
  },
  {
    why: "Nothing asks a lease that was just granted whether its lock is in a cooldown.",
    mutants: ["packages/client/src/primitives/group/group-acquisition.ts: inCooldown: false,: false ⇒ true"],
  },
  // Of single flight.
  {
    why: "The compiler asks for it: an entry is never undefined, and so has a text.",
    mutants: [
      'packages/client/src/primitives/single-flight/cache.ts: const text = checkData(entry) ?? "";: "" ⇒ "Stryker was here!"',
    ],
  },
  {
    why: "The compiler asks for it: what is no text is a number or missing, and is no entry when it is read as JSON.",
    mutants: [
      'packages/client/src/primitives/single-flight/cache.ts: return typeof text === "string" ? readEntry(parsedJson(text)?.value) : undefined;: typeof text === "string" ⇒ true',
    ],
  },
  {
    why: "It only frees memory, while the call lasts: work that has ended cannot be ended again.",
    mutants: ["packages/client/src/primitives/single-flight/attempts.ts: ignore();: ignore(); ⇒ ;"],
  },
  {
    why: "The compiler asks for it, and it is always so: callers join a refresh only while it has its lease.",
    mutants: [
      "packages/client/src/primitives/single-flight/call.ts: if (this.#ahead !== undefined && this.#lease?.held === true) return;: this.#lease?.held ⇒ this.#lease.held",
    ],
  },
  {
    why: "A refresh without a lock has no callers: nobody gets what it gives.",
    mutants: [
      'packages/client/src/primitives/single-flight/call.ts: return { value: fresh.value, source: "cache" };: { value: fresh.value, source: "cache" } ⇒ {}',
      'packages/client/src/primitives/single-flight/call.ts: return { value: fresh.value, source: "cache" };: "cache" ⇒ ""',
    ],
  },
  {
    why: "What is not there is forgotten, whenever it was looked for.",
    mutants: [
      "packages/client/src/primitives/single-flight/call.ts: return { value: undefined, source, look: { entry: undefined, at: this.#lookedAt } };: { entry: undefined, at: this.#lookedAt } ⇒ {}",
    ],
  },
  {
    why: "Only a refresh goes on without callers: every other call was cut off when its last caller left.",
    mutants: [
      "packages/client/src/primitives/single-flight/call.ts: if (this.#ahead === undefined || !this.#callers.isEmpty) return;: this.#ahead === undefined ⇒ false",
    ],
  },
  {
    why: "The compiler asks for it, and it is always so: a map that has too many values has a first one.",
    mutants: [
      "packages/client/src/primitives/single-flight/process-memory.ts: if (this.#values.size > this.#most && first !== undefined) this.#values.delete(first);: first !== undefined ⇒ true",
    ],
  },
  {
    why: "It only frees memory: what is kept for no time is never given.",
    mutants: [
      "packages/client/src/primitives/single-flight/process-memory.ts: if (this.#forMs === 0 || (kept !== undefined && kept.fencingToken > entry.fencingToken)) return;: this.#forMs === 0 ⇒ false",
    ],
  },
  {
    why: "It makes a difference only where a clock was set back by exactly a minute: done slots are refused as done.",
    mutants: [
      "packages/jobs/src/runs/scheduling.ts: if (now < seenUntil - limits.slotAheadMs) seenUntil = now;: now < seenUntil - limits.slotAheadMs ⇒ now <= seenUntil - limits.slotAheadMs",
    ],
  },
  {
    why: "An addition insists on what is not there: only an item that is there refuses it, and each store brings that item.",
    mutants: [
      "packages/jobs/src/tasks/task-set.ts: const areOwn = known.every((refusal) => refusal?.item?.[taskAttributeNames.addedAt] === now);: refusal?.item?.[taskAttributeNames.addedAt] ⇒ refusal?.item[taskAttributeNames.addedAt]",
    ],
  },
  {
    why: "There is always a signal: its only caller gives that of an open client.",
    mutants: [
      "packages/jobs/src/tasks/task-set.ts: terms.signal?.throwIfAborted();: terms.signal?.throwIfAborted ⇒ terms.signal.throwIfAborted",
    ],
  },
  {
    why: "The number of the place where a statement is kept: all numbers still differ.",
    mutants: [
      "packages/client/src/statements/lock.ts: const asked = (data === undefined ? 0 : 4) + (reentrant ? 8 : 0) + (ownClock ? 16 : 0);: (data === undefined ? 0 : 4) + (reentrant ? 8 : 0) ⇒ (data === undefined ? 0 : 4) - (reentrant ? 8 : 0)",
    ],
  },
  {
    why: "It spares work: a signal of a handle's own would abort in the same moments, with the same reason.",
    mutants: [
      "packages/client/src/core/lease.ts: if (!lease.record.reentrant) return;: !lease.record.reentrant ⇒ false",
    ],
  },
  {
    why: "The signal is that of this wait alone, whose listeners and timer go right after.",
    mutants: ["packages/client/src/core/request-gate.ts: ignore();: ignore(); ⇒ ; (2)"],
  },
];
