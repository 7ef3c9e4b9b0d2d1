/** Mistakes that are planted into the lock, each of which some course of its scenario has to show. */

import type { Moment } from "../../../packages/client/src/base/clock.ts";
import { ServiceClock } from "../../../packages/client/src/base/service-clock.ts";
import { Attempt } from "../../../packages/client/src/core/attempt.ts";
import { LeaseDeadline } from "../../../packages/client/src/core/deadline.ts";
import { ExpiryDetector } from "../../../packages/client/src/core/expiry-detector.ts";
import { HeldLease } from "../../../packages/client/src/core/held-lease.ts";
import { kindOf, type LeaseWrite } from "../../support/lease-writes.ts";
import { clockSkewMs, leaseDurationMs } from "../../worlds/cluster.ts";
import type { Tamper } from "../../worlds/network.ts";
import {
  type Mistake,
  type Planted,
  replacing,
  type SentTest,
  withoutTests,
} from "../../worlds/simulation.ts";
import { believingLonger, endingAny, judgingEarly } from "./lease-mistakes.ts";

const twoHolders = /is held by .* and by/;
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

/** Changes the update of writes of a kind. */
function updating(kind: LeaseWrite, change: (update: string) => string): Tamper {
  return (write) =>
    "update" in write && kindOf(write) === kind ? { ...write, update: change(write.update) } : write;
}

/** The fencing tokens are those of the item, or begin at one. */
const forgetfulFence: Tamper = (write) => {
  const { ":fromFence": from } = write.values;
  return from === undefined ? write : { ...write, values: { ...write.values, ":fromFence": 1 } };
};

const noNewFence: Tamper = (write) => {
  const { ":byFence": by } = write.values;
  return by === undefined ? write : { ...write, values: { ...write.values, ":byFence": 0 } };
};

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
function judgingOwnClocks(): () => void {
  const { judge } = ExpiryDetector.prototype;
  ExpiryDetector.prototype.judge = function (record) {
    return judge.call(this, { ...record, ownClock: false });
  };
  return () => {
    ExpiryDetector.prototype.judge = judge;
  };
}

/** A suspension goes unnoticed by every clock but the service's. */
function unawareOfSuspensions(): () => void {
  const ahead = new WeakMap<ServiceClock, number>();
  const { moment } = ServiceClock.prototype;
  ServiceClock.prototype.moment = function (): Moment {
    const { monotonic, wall } = moment.call(this);
    const by = ahead.get(this) ?? wall - monotonic;
    ahead.set(this, by);
    return { monotonic, wall: monotonic + by, uptime: undefined };
  };
  return () => {
    ServiceClock.prototype.moment = moment;
  };
}

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

/** It knows no more than so many records, and forgets the one that it has not met for longest. */
function rememberingOnly(most: number): Planted["plant"] {
  return replacing(ExpiryDetector.prototype, "judge", (original) => {
    const known = new Set<string>();
    return function (this: ExpiryDetector, record) {
      const expiry = original.call(this, record);
      const isKnown = known.delete(record.key);
      known.add(record.key);
      for (const oldest of known) if (known.size > most) known.delete(oldest);
      return isKnown ? expiry : { reason: undefined, claimableInMs: record.leaseDurationMs };
    };
  });
}

export const usual: readonly Mistake[] = [
  { what: "a grant of a lock that is held", tamper: ignored("acquire", "token"), violation: twoHolders },
  {
    what: "a release that takes any holder's lease",
    tamper: endingAny,
    violation: /a stale write of|told to be released/,
  },
  { what: "a fencing token that does not grow", tamper: noNewFence, violation: /the fencing token of/ },
  {
    what: "a token that nothing revokes",
    tamper: ignored("acquire", "releasedToken"),
    violation: /was revoked, and came back/,
  },
  {
    what: "a release that leaves its token unrevoked",
    tamper: updating("end", (update) =>
      update.replace("#releasedToken = :releasedToken", "#releasedToken = :ttl"),
    ),
    violation: anyHarm,
  },
  { what: "a takeover at half of the lease", plant: judgingEarly(2_500), violation: anyHarm },
  {
    what: "a lost release: the answer to its second copy is taken for another's doing",
    tamper: updating("end", (update) => update.replace("#releasedToken = :releasedToken, ", "")),
    violation: anyHarm,
  },
  {
    what: "an item that may be removed while it is in use",
    tamper: (write) =>
      kindOf(write) === "acquire" ? { ...write, values: { ...write.values, ":ttl": 1 } } : write,
    violation: /may be removed/,
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
  { what: "a grant of a lock that is held", tamper: ignored("acquire", "token"), violation: twoHolders },
];

export const renewed: readonly Mistake[] = [
  {
    what: "a renewal of whatever lease there is",
    tamper: untested("renew", ["token", "fence"]),
    violation: anyHarm,
  },
  {
    what: "a renewal that does not write the expiry",
    tamper: updating("renew", (update) =>
      update.replace("#expiresAt = :expiresAt", "#expiresAt = #expiresAt"),
    ),
    violation: anyHarm,
  },
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

export const lateCopies: readonly Mistake[] = [
  {
    what: "a late copy with a stale checked write: a check of the token alone",
    tamper: withoutTests(
      ({ attribute, write }) => "action" in write && write.action === "check" && attribute === "fence",
    ),
    violation: /a stale checked write/,
  },
  {
    what: "a check that checks nothing",
    tamper: withoutTests(({ write }) => "action" in write && write.action === "check"),
    violation: /a stale checked write/,
  },
];

export const slots: readonly Mistake[] = [
  {
    what: "a slot that is not looked at before a grant",
    tamper: ignored("acquire", "doneSlot"),
    violation: /was granted the slot/,
  },
  {
    what: "a completion that does not record its slot",
    tamper: updating("end", (update) => update.replace(", #doneSlot = :doneSlot", "")),
    violation: anyHarm,
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
    tamper: forgetfulFence,
    violation: /the fencing token of/,
  },
];

export const aThousandAndOne: readonly Mistake[] = [
  {
    what: "1,001 locks: a caller that remembers no more than 1,000 of them",
    plant: rememberingOnly(1_000),
    violation: /of 1001 dead locks were taken/,
  },
];

export const firstRenewal: readonly Mistake[] = [
  {
    what: "a grant whose first renewal fails, and which is not taken back",
    plant: replacing(Attempt.prototype, "abandon", () => () => undefined),
    violation: /holds the lock, and no caller was given it/,
  },
];
