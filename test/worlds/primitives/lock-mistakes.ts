/**
 * Mistakes that are planted into the lock: a course of the explorer has to show each of them, by the name of its
 * scenario, and some random world those of `ofWorlds`.
 */
import type { Moment } from "../../../packages/client/src/base/clock.ts";
import { ServiceClock } from "../../../packages/client/src/base/service-clock.ts";
import { Attempt } from "../../../packages/client/src/core/attempt.ts";
import { LeaseDeadline } from "../../../packages/client/src/core/deadline.ts";
import { ExpiryDetector } from "../../../packages/client/src/core/expiry-detector.ts";
import type { HeldForm } from "../../../packages/client/src/core/form.ts";
import { HeldLease } from "../../../packages/client/src/core/held-lease.ts";
import { LockForm } from "../../../packages/client/src/core/lock-form.ts";
import { isA, type LeaseWrite } from "../../support/lease-writes.ts";
import { clockSkewMs, leaseDurationMs } from "../cluster.ts";
import {
  both,
  exists,
  type Mistakes,
  type Plant,
  replacing,
  saying,
  sending,
  without,
} from "../simulation.ts";
import { believingLonger, endingAny, judgingEarly, twoHolders } from "./lease-mistakes.ts";

const anyHarm = /./;

/** Writes of a kind set an attribute only where another one is missing, and to that one otherwise. */
function settingUnless(kind: LeaseWrite, attribute: string, other: string): Plant {
  const set = `#${attribute} = :${attribute}`;
  const mistaken = `#${attribute} = if_not_exists(#${other}, :${attribute})`;
  return sending((write) =>
    "update" in write && isA(kind)(write) ? { ...write, update: write.update.replace(set, mistaken) } : write,
  );
}

/** The clocks by which moments were read. */
const clocks = new WeakMap<Moment, ServiceClock>();

/** The deadline counts from when the answer has come. */
const countingFromTheAnswer = both(
  replacing(ServiceClock.prototype, "moment", (moment, _, clock) => {
    const now = moment();
    clocks.set(now, clock);
    return now;
  }),
  replacing(LeaseDeadline.prototype, "confirm", (confirm, [belief, expiresAt]) =>
    confirm({ ...belief, since: clocks.get(belief.since)?.moment() ?? belief.since }, expiresAt),
  ),
);

/** What a lease's time is, its holder's or its adopter's wall clock alone decides. */
const trustingItsWallClock = both(
  replacing(ServiceClock.prototype, "checkExpiry", (_, [_expiresAt, _since, leaseDurationMs]) => ({
    believedMs: leaseDurationMs,
    isSound: true,
  })),
  replacing(ServiceClock.prototype, "latest", (_, __, clock) => clock.moment().wall),
  replacing(ServiceClock.prototype, "isPast", () => false),
);

/** What a lease says of the clock of its expiry goes unread. */
const judgingOwnClocks = replacing(ExpiryDetector.prototype, "judge", (judge, [record]) =>
  judge({ ...record, ownClock: false }),
);

/** By how much the wall clock was ahead of the monotonic one at first. */
const ahead = new WeakMap<ServiceClock, number>();

/** A suspension goes unnoticed by every clock but the service's. */
const unawareOfSuspensions = replacing(ServiceClock.prototype, "moment", (moment, _, clock) => {
  const { monotonic, wall } = moment();
  const by = ahead.get(clock) ?? wall - monotonic;
  ahead.set(clock, by);
  return { monotonic, wall: monotonic + by, uptime: undefined };
});

/** A record is judged as if everybody agreed in the time: nothing is left for how far clocks differ. */
const withoutAllowance = replacing(ExpiryDetector.prototype, "judge", (judge, [record]) => {
  const putRight = replacing(ServiceClock.prototype, "earliest", (earliest, [now]) => {
    const time = earliest(now);
    return time === undefined ? undefined : time + clockSkewMs;
  })();
  try {
    return judge(record);
  } finally {
    putRight();
  }
});

const ownWallClock = replacing(ServiceClock.prototype, "earliest", (earliest, [now], clock) =>
  earliest(now) === undefined ? undefined : clock.moment().wall,
);

/** A holder that no answer has told the time believes in the expiry of its own clock, and does not mark it so. */
const believingUntold = both(
  () => {
    const isUntold = Object.getOwnPropertyDescriptor(ServiceClock.prototype, "isUntold") ?? {};
    Object.defineProperty(ServiceClock.prototype, "isUntold", { configurable: true, get: () => false });
    return () => Object.defineProperty(ServiceClock.prototype, "isUntold", isUntold);
  },
  replacing(ServiceClock.prototype, "checkExpiry", (checkExpiry, [expiresAt, since, leaseMs], clock) =>
    checkExpiry(expiresAt, since, leaseMs, !clock.isTold),
  ),
);

/** By how much the last answer's time was ahead of the monotonic clock. */
const newest = new WeakMap<ServiceClock, number>();

/** Of two answers that contradict each other, a taker believes the later one. */
const believingTheLatestAnswer = both(
  replacing(ServiceClock.prototype, "note", (note, [time, sentAt], clock) => {
    note(time, sentAt);
    if (time !== undefined) newest.set(clock, time.earliest - clock.monotonic());
  }),
  replacing(ServiceClock.prototype, "earliest", (_, __, clock) => {
    const by = newest.get(clock);
    return by === undefined ? undefined : by + clock.monotonic();
  }),
);

/** An attempt does not know the lease again that it has written itself. */
const unawareOfItsOwnWrite = replacing(
  LockForm.prototype as HeldForm,
  "leaseIn",
  (_, [item, token], form) => {
    const lease = form.leasesIn(item).find((each) => each.token === token);
    return lease && { ...lease, owner: "somebody else" };
  },
);

const slotNotLookedAt: Mistakes = {
  "a slot that is not looked at before a grant": [
    without({ of: "doneSlot", by: isA("acquire") }),
    /was granted the slot/,
  ],
};

const isCheck = (write: object): boolean => "action" in write && write.action === "check";
const checkedByNothing: Mistakes = {
  "a check that checks nothing": [without({ by: isCheck }), /a stale checked write/],
};

/** By the scenario that has to show them, the first one "lock" itself. */
export const ofScenarios = {
  lock: {
    "a grant of a lock that is held": [without({ of: "token", by: isA("acquire") }), twoHolders],
    "a release that takes any holder's lease": [endingAny, /believes to hold|told to be released/],
    "a fencing token that does not grow": [saying(":byFence", 0), /the fencing token of/],
    "a token that nothing revokes": [
      without({ of: "releasedToken", by: isA("acquire") }),
      /was revoked, and came back/,
    ],
    "a release that leaves its token unrevoked": [
      settingUnless("end", "releasedToken", "owner"),
      /was revoked, and came back/,
    ],
    "a takeover at half of the lease": [judgingEarly(2_500), anyHarm],
    "an item that may be removed while it is in use": [
      saying(":ttl", 1, isA("acquire")),
      /may be removed|the fencing token of/,
    ],
  },
  slow: { "a slow request: a deadline that counts from the answer": [countingFromTheAnswer, twoHolders] },
  "three-callers": {
    "a takeover that two callers make of one record": [
      without({ of: ["token", "version", "fence"], by: isA("takeOver"), left: exists }),
      twoHolders,
    ],
  },
  renewed: { "a lease that is believed for twice its time": [believingLonger(leaseDurationMs), twoHolders] },
  "renewed-late": {
    "a renewal that may shorten a newer one": [without({ of: "version", by: isA("renew") }), twoHolders],
  },
  "judged-late": {
    "a takeover that ignores the version of its record": [
      without({ of: "version", by: isA("takeOver") }),
      twoHolders,
    ],
  },
  clocks: {
    "a clock step: an expiry that is judged by the caller's wall clock": [ownWallClock, twoHolders],
    "a holder that believes in an expiry of its own wall clock, whatever the answers tell": [
      trustingItsWallClock,
      twoHolders,
    ],
    "a suspension that no clock tells": [unawareOfSuspensions, twoHolders],
  },
  untold: {
    "an expiry of its writer's own clock that is judged by the service's": [judgingOwnClocks, twoHolders],
  },
  "slow-service": {
    "an expiry that is judged without the allowance for clock skew": [withoutAllowance, twoHolders],
  },
  "handed-over": {
    "an adopted lease that is believed by the adopter's own wall clock": [trustingItsWallClock, twoHolders],
  },
  "late-copies": {
    "a late copy with a stale checked write: a check of the token alone": [
      without({ of: "fence", by: isCheck }),
      /a stale checked write/,
    ],
    ...checkedByNothing,
  },
  slots: {
    ...slotNotLookedAt,
    "a completion that does not record its slot": [
      saying(":doneSlot", "0", isA("end")),
      /was completed, and is not done|was granted the slot/,
    ],
  },
  "kept-closed": {
    "a closed lock that is opened early": [judgingEarly(2_000), /was opened while it was closed/],
  },
  reentrant: {
    "reentrant neighbours: the first handle that is let go ends the lease for the others": [
      replacing(HeldLease.prototype, "retain", () => undefined),
      /let one handle go, and lost/,
    ],
  },
  "removed-by-ttl": {
    "a fencing token that is lost when the item goes": [saying(":fromFence", 1), /the fencing token of/],
  },
  "first-renewal": {
    "a grant whose first renewal fails, and which is not taken back": [
      replacing(Attempt.prototype, "abandon", () => undefined),
      /holds the lock, and no caller was given it/,
    ],
  },
} satisfies Readonly<Record<string, Mistakes>>;

/** What random worlds see of all that, and what they alone can show. */
export const ofWorlds: Mistakes = {
  ...ofScenarios.lock,
  ...ofScenarios.slow,
  ...ofScenarios["three-callers"],
  ...ofScenarios.renewed,
  ...ofScenarios["judged-late"],
  ...ofScenarios.clocks,
  ...ofScenarios.untold,
  ...ofScenarios["slow-service"],
  ...checkedByNothing,
  ...ofScenarios["removed-by-ttl"],
  ...slotNotLookedAt,
  "a renewal of whatever lease there is": [
    without({ of: ["token", "fence"], by: isA("renew"), left: exists }),
    anyHarm,
  ],
  "a renewal that does not write the expiry": [
    settingUnless("renew", "expiresAt", "expiresAt"),
    /is stuck past its lease|may be removed/,
  ],
  "a holder that no answer has told the time, and that believes in its expiry": [believingUntold, twoHolders],
  "a taker that believes the latest of two answers that contradict each other": [
    believingTheLatestAnswer,
    twoHolders,
  ],
  "an own write that is taken for contention": [unawareOfItsOwnWrite, /is held by its own acquisition/],
};
