/**
 * Mistakes that are planted into the lock: some course of the explorer's scenario has to show each of them, and some
 * random world those of `ofWorlds`.
 */

import type { Moment } from "../../../packages/client/src/base/clock.ts";
import { ServiceClock } from "../../../packages/client/src/base/service-clock.ts";
import { Attempt } from "../../../packages/client/src/core/attempt.ts";
import { LeaseDeadline } from "../../../packages/client/src/core/deadline.ts";
import { ExpiryDetector } from "../../../packages/client/src/core/expiry-detector.ts";
import type { HeldForm } from "../../../packages/client/src/core/form.ts";
import { HeldLease } from "../../../packages/client/src/core/held-lease.ts";
import { LockForm } from "../../../packages/client/src/core/lock-form.ts";
import { kindOf, type LeaseWrite } from "../../support/lease-writes.ts";
import { clockSkewMs, leaseDurationMs } from "../cluster.ts";
import type { Tamper } from "../network.ts";
import { type Mistake, replacing, type SentTest, withoutTests } from "../simulation.ts";
import { believingLonger, endingAny, judgingEarly } from "./lease-mistakes.ts";

const twoHolders = /believes to hold/;
const anyHarm = /./;

/** Of the tests of these attributes in writes of a kind, only this is left: that they are there at all. */
function untested(kind: LeaseWrite, attributes: readonly string[]): Tamper {
  return withoutTests(
    ({ attribute, write }: SentTest) => kindOf(write) === kind && attributes.includes(attribute),
    (name) => `attribute_exists(${name})`,
  );
}

/** As {@link untested}, and they need not even be there. */
function ignored(kind: LeaseWrite, attribute: string): Tamper {
  return withoutTests(({ attribute: tested, write }) => kindOf(write) === kind && tested === attribute);
}

/** Writes say this in place of a value that they have: those of a kind, or all. */
function saying(name: `:${string}`, value: string | number, kind?: LeaseWrite): Tamper {
  return (write) =>
    name in write.values && (kind === undefined || kindOf(write) === kind)
      ? { ...write, values: { ...write.values, [name]: value } }
      : write;
}

/** Writes of a kind set an attribute only where another one is missing, and to that one otherwise. */
function settingUnless(kind: LeaseWrite, attribute: string, other: string): Tamper {
  const [set, mistaken] = [
    `#${attribute} = :${attribute}`,
    `#${attribute} = if_not_exists(#${other}, :${attribute})`,
  ];
  return (write) =>
    "update" in write && kindOf(write) === kind
      ? { ...write, update: write.update.replace(set, mistaken) }
      : write;
}

/** The deadline counts from when the answer has come. */
function countingFromTheAnswer(): () => void {
  const clocks = new WeakMap<Moment, ServiceClock>();
  const { moment } = ServiceClock.prototype;
  ServiceClock.prototype.moment = function (): Moment {
    const now = moment.call(this);
    clocks.set(now, this);
    return now;
  };
  const { confirm } = LeaseDeadline.prototype;
  LeaseDeadline.prototype.confirm = function (belief, expiresAt): void {
    const since = clocks.get(belief.since)?.moment() ?? belief.since;
    confirm.call(this, { ...belief, since }, expiresAt);
  };
  return () => {
    ServiceClock.prototype.moment = moment;
    LeaseDeadline.prototype.confirm = confirm;
  };
}

/** What a lease's time is, its holder's or its adopter's wall clock alone decides. */
function trustingItsWallClock(): () => void {
  const { checkExpiry, latest, isPast } = ServiceClock.prototype;
  Object.assign(ServiceClock.prototype, {
    checkExpiry: (_expiresAt: number, _since: Moment, leaseDurationMs: number) => ({
      believedMs: leaseDurationMs,
      isSound: true,
    }),
    latest(this: ServiceClock): number {
      return this.moment().wall;
    },
    isPast: () => false,
  });
  return () => {
    Object.assign(ServiceClock.prototype, { checkExpiry, latest, isPast });
  };
}

/** What a lease says of the clock of its expiry goes unread. */
const judgingOwnClocks = replacing(
  ExpiryDetector.prototype,
  "judge",
  (judge) =>
    function (this: ExpiryDetector, record) {
      return judge.call(this, { ...record, ownClock: false });
    },
);

/** A suspension goes unnoticed by every clock but the service's. */
const unawareOfSuspensions = replacing(ServiceClock.prototype, "moment", (moment) => {
  const ahead = new WeakMap<ServiceClock, number>();
  return function (this: ServiceClock): Moment {
    const { monotonic, wall } = moment.call(this);
    const by = ahead.get(this) ?? wall - monotonic;
    ahead.set(this, by);
    return { monotonic, wall: monotonic + by, uptime: undefined };
  };
});

/** A record is judged as if everybody agreed in the time: nothing is left for how far clocks differ. */
const withoutAllowance = replacing(
  ExpiryDetector.prototype,
  "judge",
  (judge) =>
    function (this: ExpiryDetector, record) {
      const { earliest } = ServiceClock.prototype;
      ServiceClock.prototype.earliest = function (now): number | undefined {
        const time = earliest.call(this, now);
        return time === undefined ? undefined : time + clockSkewMs;
      };
      try {
        return judge.call(this, record);
      } finally {
        ServiceClock.prototype.earliest = earliest;
      }
    },
);

const ownWallClock = replacing(
  ServiceClock.prototype,
  "earliest",
  (original) =>
    function (this: ServiceClock, now) {
      return original.call(this, now) === undefined ? undefined : this.moment().wall;
    },
);

/** A holder that no answer has told the time believes in the expiry of its own clock, and does not mark it so. */
function believingUntold(): () => void {
  const { checkExpiry } = ServiceClock.prototype;
  const isUntold = Object.getOwnPropertyDescriptor(ServiceClock.prototype, "isUntold") ?? {};
  Object.defineProperty(ServiceClock.prototype, "isUntold", { configurable: true, get: () => false });
  ServiceClock.prototype.checkExpiry = function (expiresAt, since, leaseMs) {
    return checkExpiry.call(this, expiresAt, since, leaseMs, !this.isTold);
  };
  return () => {
    Object.defineProperty(ServiceClock.prototype, "isUntold", isUntold);
    ServiceClock.prototype.checkExpiry = checkExpiry;
  };
}

/** Of two answers that contradict each other, a taker believes the later one. */
function believingTheLatestAnswer(): () => void {
  const newest = new WeakMap<ServiceClock, number>();
  const { note, earliest } = ServiceClock.prototype;
  ServiceClock.prototype.note = function (time, sentAt): void {
    note.call(this, time, sentAt);
    if (time !== undefined) newest.set(this, time.earliest - this.monotonic());
  };
  ServiceClock.prototype.earliest = function (): number | undefined {
    const ahead = newest.get(this);
    return ahead === undefined ? undefined : ahead + this.monotonic();
  };
  return () => {
    Object.assign(ServiceClock.prototype, { note, earliest });
  };
}

/** An attempt does not know the lease again that it has written itself. */
function unawareOfItsOwnWrite(): () => void {
  const form: HeldForm = LockForm.prototype;
  form.leaseIn = function (item, token) {
    const lease = this.leasesIn(item).find((each) => each.token === token);
    return lease && { ...lease, owner: "somebody else" };
  };
  return () => {
    delete form.leaseIn;
  };
}

export const usual: readonly Mistake[] = [
  { what: "a grant of a lock that is held", tamper: ignored("acquire", "token"), violation: twoHolders },
  {
    what: "a release that takes any holder's lease",
    tamper: endingAny,
    violation: /believes to hold|told to be released/,
  },
  {
    what: "a fencing token that does not grow",
    tamper: saying(":byFence", 0),
    violation: /the fencing token of/,
  },
  {
    what: "a token that nothing revokes",
    tamper: ignored("acquire", "releasedToken"),
    violation: /was revoked, and came back/,
  },
  {
    what: "a release that leaves its token unrevoked",
    tamper: settingUnless("end", "releasedToken", "owner"),
    violation: /was revoked, and came back/,
  },
  { what: "a takeover at half of the lease", plant: judgingEarly(2_500), violation: anyHarm },
  {
    what: "an item that may be removed while it is in use",
    tamper: saying(":ttl", 1, "acquire"),
    violation: /may be removed|the fencing token of/,
  },
];

export const slow: readonly Mistake[] = [
  {
    what: "a slow request: a deadline that counts from the answer",
    plant: countingFromTheAnswer,
    violation: twoHolders,
  },
];

export const threeCallers: readonly Mistake[] = [
  {
    what: "a takeover that two callers make of one record",
    tamper: untested("takeOver", ["token", "version", "fence"]),
    violation: twoHolders,
  },
];

export const renewed: readonly Mistake[] = [
  {
    what: "a lease that is believed for twice its time",
    plant: believingLonger(leaseDurationMs),
    violation: twoHolders,
  },
];

export const renewedLate: readonly Mistake[] = [
  {
    what: "a renewal that may shorten a newer one",
    tamper: ignored("renew", "version"),
    violation: twoHolders,
  },
];

export const judgedLate: readonly Mistake[] = [
  {
    what: "a takeover that ignores the version of its record",
    tamper: ignored("takeOver", "version"),
    violation: twoHolders,
  },
];

export const clocks: readonly Mistake[] = [
  {
    what: "a clock step: an expiry that is judged by the caller's wall clock",
    plant: ownWallClock,
    violation: twoHolders,
  },
  {
    what: "a holder that believes in an expiry of its own wall clock, whatever the answers tell",
    plant: trustingItsWallClock,
    violation: twoHolders,
  },
  { what: "a suspension that no clock tells", plant: unawareOfSuspensions, violation: twoHolders },
];

export const untold: readonly Mistake[] = [
  {
    what: "an expiry of its writer's own clock that is judged by the service's",
    plant: judgingOwnClocks,
    violation: twoHolders,
  },
];

export const slowService: readonly Mistake[] = [
  {
    what: "an expiry that is judged without the allowance for clock skew",
    plant: withoutAllowance,
    violation: twoHolders,
  },
];

export const handedOver: readonly Mistake[] = [
  {
    what: "an adopted lease that is believed by the adopter's own wall clock",
    plant: trustingItsWallClock,
    violation: twoHolders,
  },
];

const checkedByNothing: Mistake = {
  what: "a check that checks nothing",
  tamper: withoutTests(({ write }) => "action" in write && write.action === "check"),
  violation: /a stale checked write/,
};

export const lateCopies: readonly Mistake[] = [
  {
    what: "a late copy with a stale checked write: a check of the token alone",
    tamper: withoutTests(
      ({ attribute, write }) => "action" in write && write.action === "check" && attribute === "fence",
    ),
    violation: /a stale checked write/,
  },
  checkedByNothing,
];

const slotNotLookedAt: Mistake = {
  what: "a slot that is not looked at before a grant",
  tamper: ignored("acquire", "doneSlot"),
  violation: /was granted the slot/,
};

export const slots: readonly Mistake[] = [
  slotNotLookedAt,
  {
    what: "a completion that does not record its slot",
    tamper: saying(":doneSlot", "0", "end"),
    violation: /was completed, and is not done|was granted the slot/,
  },
];

export const keptClosed: readonly Mistake[] = [
  {
    what: "a closed lock that is opened early",
    plant: judgingEarly(2_000),
    violation: /was opened while it was closed/,
  },
];

export const reentrant: readonly Mistake[] = [
  {
    what: "reentrant neighbours: the first handle that is let go ends the lease for the others",
    plant: replacing(HeldLease.prototype, "retain", () => () => undefined),
    violation: /let one handle go, and lost/,
  },
];

export const removedByTtl: readonly Mistake[] = [
  {
    what: "a fencing token that is lost when the item goes",
    tamper: saying(":fromFence", 1),
    violation: /the fencing token of/,
  },
];

export const firstRenewal: readonly Mistake[] = [
  {
    what: "a grant whose first renewal fails, and which is not taken back",
    plant: replacing(Attempt.prototype, "abandon", () => () => undefined),
    violation: /holds the lock, and no caller was given it/,
  },
];

/** What random worlds see of all that, and what they alone can show. */
export const ofWorlds: readonly Mistake[] = [
  ...[usual, slow, threeCallers, renewed, judgedLate, clocks].flat(),
  ...[untold, slowService, checkedByNothing, removedByTtl].flat(),
  slotNotLookedAt,
  {
    what: "a renewal of whatever lease there is",
    tamper: untested("renew", ["token", "fence"]),
    violation: anyHarm,
  },
  {
    what: "a renewal that does not write the expiry",
    tamper: settingUnless("renew", "expiresAt", "expiresAt"),
    violation: /is stuck past its lease|may be removed/,
  },
  {
    what: "a holder that no answer has told the time, and that believes in its expiry",
    plant: believingUntold,
    violation: twoHolders,
  },
  {
    what: "a taker that believes the latest of two answers that contradict each other",
    plant: believingTheLatestAnswer,
    violation: twoHolders,
  },
  {
    what: "an own write that is taken for contention",
    plant: unawareOfItsOwnWrite,
    violation: /is held by its own acquisition/,
  },
];
