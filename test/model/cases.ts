/**
 * What the model is walked through: small cases, each with every order of steps that it allows, and mistakes that one of
 * the cases must show.
 */

import { type Rules, rules, type Setting } from "./lock.ts";
import { guards, type Row, type WriteName, writes } from "./writes.ts";

const setting: Setting = {
  ahead: [0, 1],
  attempts: [1, 1],
  renewals: [0, 0],
  strays: 1,
  breaks: 0,
  fencedWrites: 0,
  lastTick: 3,
  leaseTicks: 1,
  skew: 1,
  longestDelay: 1,
  retention: 3,
};

const wrong: Setting = { ...setting, leaseTicks: 2, strays: 0 };

/** By what they show. */
export const cases: Readonly<Record<string, Setting>> = {
  "two late copies": { ...setting, strays: 2, renewals: [1, 0], lastTick: 0 },
  "an operator who breaks a lease": { ...setting, breaks: 1, lastTick: 0 },
  "a lock that changes hands after it was judged": { ...setting, attempts: [1, 2], strays: 0, lastTick: 1 },
  "fenced writes": { ...setting, ahead: [0, 3], fencedWrites: 2, strays: 0 },
  "wall clocks that are wrong by more than the allowance": { ...wrong, ahead: [-3, 3] },
  "wall clocks that are wrong by the allowance": { ...wrong, ahead: [-2, 0], skew: 2 },
  "a renewal that a newer one overtakes": {
    ...setting,
    ...{ ahead: [0, 0], leaseTicks: 2, skew: 0, renewals: [2, 0], longestDelay: 2 },
  },
  "a client that comes back": { ...setting, attempts: [2, 1], renewals: [1, 0], lastTick: 0 },
  "takeovers and a renewal": { ...setting, leaseTicks: 2, renewals: [1, 0], longestDelay: 2 },
  "a wall clock that is slow by more than the allowance": { ...setting, ahead: [-2, 0], leaseTicks: 2 },
  "ttl, and a late copy": { ...setting, ahead: [1, 0], lastTick: 5, retention: 2 },
};

/** A mistake in the rules, which one of the cases must show. */
export interface Mistake {
  readonly what: string;
  readonly rules: Rules;
  /** What the cases promise less. */
  readonly setting?: Partial<Setting>;
}

/** The rules without one condition of a write. */
function without(write: WriteName, index: number): Rules {
  const row: Row = { ...writes[write], when: writes[write].when.filter((_, other) => other !== index) };
  return { ...rules, writes: { ...writes, [write]: row } };
}

const everyCondition: readonly Mistake[] = Object.entries(writes).flatMap(([name, { when }]) =>
  when.map(({ says }, index) => ({ what: `${name}: ${says}`, rules: without(name as WriteName, index) })),
);

/**
 * Conditions that no case needs. No two leases have one fencing token, and only a lease that is there has a version: so a
 * renewal of another lease, or of none, is refused without its token too. A release does not ask for a version, and a
 * released item keeps its fencing token. A takeover from a late copy of an old acquire hurts no holder: it hurts a slot
 * that is done, and the model knows no slots. Nor does a takeover need the token beside the fencing token.
 */
const followingFromOthers: readonly string[] = [
  "renew: the token is mine",
  "takeOver: the token is the one that was judged",
  "takeOver: the fencing token is the one that was judged",
];

/** Every condition of every write that does not follow from the others. */
export const conditions: readonly Mistake[] = everyCondition.filter(
  ({ what }) => !followingFromOthers.includes(what),
);
export const spare: readonly Mistake[] = everyCondition.filter(({ what }) =>
  followingFromOthers.includes(what),
);

const [isMyToken, isMyFence] = guards.stillHeld;
export const mistakes: readonly Mistake[] = [
  { what: "stillHeld: the token is mine", rules: { ...rules, stillHeld: [isMyFence] } },
  { what: "stillHeld: the fencing token is mine", rules: { ...rules, stillHeld: [isMyToken] } },
  { what: "noLaterHolder: no later holder has written", rules: { ...rules, noLaterHolder: () => true } },
  {
    what: "an expiry without the allowance for skew",
    rules: { ...rules, isExpired: ({ expiresAt, now }) => now > expiresAt },
  },
  {
    what: "an expiry by the caller's wall clock",
    rules: {
      ...rules,
      isExpired: ({ expiresAt, now, ahead, setting: { skew } }) => now + ahead > expiresAt + skew,
    },
  },
  {
    what: "an observation of less than a lease",
    rules: { ...rules, isExpired: ({ since, now }) => now > since },
  },
  {
    what: "a belief that counts from the answer",
    rules: { ...rules, believedUntil: ({ now, setting: { leaseTicks } }) => now + leaseTicks },
  },
  {
    what: "a belief in an expiry of a wrong wall clock",
    rules: { ...rules, believedUntil: ({ sentAt, setting: { leaseTicks } }) => sentAt + leaseTicks },
  },
  {
    what: "a fencing token that does not count on",
    rules: {
      ...rules,
      writes: {
        ...writes,
        takeOver: {
          ...writes.takeOver,
          gives: (item, sent) => ({ ...writes.takeOver.gives(item, sent), fence: item.fence }),
        },
      },
    },
  },
  {
    what: "a fencing token that is not seeded from the time",
    rules: {
      ...rules,
      writes: {
        ...writes,
        acquire: {
          ...writes.acquire,
          gives: (item, sent) => ({ ...writes.acquire.gives(item, sent), fence: (item.fence ?? 0) + 1 }),
        },
      },
    },
  },
  {
    what: "a tombstone that forgets the fencing token",
    rules: {
      ...rules,
      writes: {
        ...writes,
        release: {
          ...writes.release,
          gives: (item, sent) => ({ ...writes.release.gives(item, sent), fence: undefined }),
        },
      },
    },
  },
  {
    what: "a release that does not revoke its token",
    rules: {
      ...rules,
      writes: {
        ...writes,
        release: {
          ...writes.release,
          gives: (item, sent) => ({ ...writes.release.gives(item, sent), released: item.released }),
        },
      },
    },
  },
  {
    what: "a cancellation that does not revoke its token",
    rules: {
      ...rules,
      writes: {
        ...writes,
        cancel: {
          ...writes.cancel,
          gives: (item, sent) => ({ ...writes.cancel.gives(item, sent), released: item.released }),
        },
      },
    },
  },
  {
    what: "a retention that is shorter than a request is under way",
    rules,
    setting: { retention: 0, longestDelay: 4 },
  },
];
