/**
 * The lock's writes as a table: when each is accepted, and what it makes of the item. Each row names the function of
 * statements/lock.ts or statements/admin.ts that it models, and each condition the part of DynamoDB's expression that it
 * stands for.
 */
import { breakLease } from "../../packages/client/src/admin/statements.ts";
import * as statements from "../../packages/client/src/statements/lock.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";

/** One tick of the model, in milliseconds: as DynamoDB's ttl has whole seconds, nothing is rounded. */
export const tickMs = 1_000;

/** What the model knows of a lease item. Times are ticks; an attribute that is missing is undefined. */
export interface Item {
  readonly token: string | undefined;
  readonly version: number | undefined;
  readonly expiresAt: number | undefined;
  readonly fence: number | undefined;
  /** The token that was released or revoked last. */
  readonly released: string | undefined;
  /** From when on DynamoDB may remove the item. */
  readonly ttl: number | undefined;
}

/** The item where there is none. */
export const absent: Item = {
  token: undefined,
  version: undefined,
  expiresAt: undefined,
  fence: undefined,
  released: undefined,
  ttl: undefined,
};

/** What a request says, whichever of the writes it is. */
export interface Sent {
  readonly token: string;
  readonly version: number;
  /** The fencing token that proves the lease, where the write asks for one. */
  readonly fence: number;
  /** When it was sent, by its sender's wall clock. */
  readonly at: number;
  readonly expiresAt: number;
  /** The record that a takeover replaces. */
  readonly judged: statements.Judged;
  readonly retention: number;
}

/** One condition: in words, as DynamoDB gets it, and as the model sees it. */
export interface Condition {
  readonly says: string;
  readonly expression: string;
  readonly holds: (item: Item, sent: Sent) => boolean;
}

/** One of the writes. */
export interface Row {
  readonly says: string;
  readonly when: readonly Condition[];
  readonly gives: (item: Item, sent: Sent) => Item;
  /** The real write, which must do the same. */
  readonly write: (sent: Sent) => Write;
}

export type WriteName =
  | "acquire"
  | "takeOver"
  | "renew"
  | "release"
  | "breakLease"
  | "cancel"
  | "revokeToken";

const lease = { key: "k" };
const isMyToken: Condition = {
  says: "the token is mine",
  expression: "#token = :ifToken",
  holds: (item, { token }) => item.token === token,
};
const isMyFence: Condition = {
  says: "the fencing token is mine",
  expression: "#fence = :ifFence",
  holds: (item, { fence }) => item.fence === fence,
};
const isNotRevoked: Condition = {
  says: "my token is not the one that was revoked last",
  expression: "#releasedToken <> :ifReleasedToken",
  holds: ({ released }, { token }) => released !== token,
};
const free = { token: undefined, version: undefined, expiresAt: undefined } as const;

function granted(item: Item, { token, version, at, expiresAt, retention }: Sent): Item {
  const fence = (item.fence ?? at * tickMs) + 1;
  return { token, version, expiresAt, fence, released: item.released, ttl: expiresAt + retention };
}

function grant({ token, version, at, expiresAt, retention }: Sent): statements.Grant {
  return {
    ...{ token, version, owner: `owner of ${token}`, acquiredAt: at * tickMs },
    ...{ expiresAt: expiresAt * tickMs, leaseDurationMs: tickMs, retentionMs: retention * tickMs },
    ...{ reentrant: false, data: undefined, slot: undefined },
  };
}

const shown = ({ token, fence }: Sent): statements.Proof => ({ token, fencingToken: fence });

/** By the names of the functions in statements/lock.ts and statements/admin.ts. */
export const writes: Readonly<Record<WriteName, Row>> = {
  acquire: {
    says: "takes a free lock",
    when: [
      {
        says: "there is no token",
        expression: "attribute_not_exists(#token)",
        holds: ({ token }) => token === undefined,
      },
      isNotRevoked,
    ],
    gives: granted,
    write: (sent) => statements.acquire(lease, grant(sent)),
  },
  takeOver: {
    says: "takes the place of a lease that was judged expired",
    when: [
      {
        says: "the token is the one that was judged",
        expression: "#token = :ifToken",
        holds: ({ token }, { judged }) => token === judged.token,
      },
      {
        says: "the version is the one that was judged",
        expression: "#version = :ifVersion",
        holds: ({ version }, { judged }) => version === judged.version,
      },
      {
        says: "the fencing token is the one that was judged",
        expression: "#fence = :ifFence",
        holds: ({ fence }, { judged }) => fence === judged.fencingToken,
      },
      isNotRevoked,
    ],
    gives: granted,
    write: (sent) => statements.takeOver(lease, grant(sent), sent.judged),
  },
  renew: {
    says: "prolongs my lease",
    when: [
      isMyToken,
      isMyFence,
      {
        says: "nothing newer of mine is written",
        expression: "#version < :ifVersion",
        holds: (item, { version }) => item.version !== undefined && item.version < version,
      },
    ],
    gives: (item, { version, expiresAt, retention }) => ({
      ...item,
      ...{ version, expiresAt, ttl: expiresAt + retention },
    }),
    write: (sent) =>
      statements.renew(lease, {
        ...{ shown: shown(sent), version: sent.version, expiresAt: sent.expiresAt * tickMs },
        ...{ leaseDurationMs: tickMs, retentionMs: sent.retention * tickMs },
      }),
  },
  release: {
    says: "lets my lock go, and revokes my token",
    when: [isMyToken, isMyFence],
    gives: (item, { token, at, retention }) => ({ ...item, ...free, released: token, ttl: at + retention }),
    write: (sent) =>
      statements.release(lease, {
        ...{ shown: shown(sent), now: sent.at * tickMs, retentionMs: sent.retention * tickMs },
        ...{ slot: undefined, cooldown: undefined },
      }),
  },
  breakLease: {
    says: "an operator ends the lease of a token",
    when: [{ ...isMyToken, says: "the token is the one that the operator has seen" }],
    gives: (item, { token }) => ({ ...item, ...free, released: token }),
    write: ({ token, at }) => breakLease(lease, token, at * tickMs),
  },
  cancel: {
    says: "takes back an acquisition without an answer",
    when: [
      {
        says: "the token is mine, or there is none",
        expression: "(#token = :ifToken OR attribute_not_exists(#token))",
        holds: (item, { token }) => item.token === token || item.token === undefined,
      },
    ],
    gives: (item, { token, at, retention }) => ({ ...item, ...free, released: token, ttl: at + retention }),
    write: ({ token, at, retention }) =>
      statements.cancel(lease, { token, now: at * tickMs, retentionMs: retention * tickMs }),
  },
  revokeToken: {
    says: "revokes my token beside the lease of another",
    when: [
      {
        says: "there is a token",
        expression: "attribute_exists(#token)",
        holds: ({ token }) => token !== undefined,
      },
    ],
    gives: (item, { token }) => ({ ...item, released: token }),
    write: ({ token }) => statements.revokeToken(lease, token),
  },
};

/** What guards the writes of the user's own program: no write of the lock's. */
export const guards = {
  /** {@link statements.stillHeld}, of statements/lock.ts. */
  stillHeld: [isMyToken, isMyFence],
  /** `noLaterHolder`, of statements/queries.ts. */
  noLaterHolder: {
    says: "no later holder has written",
    expression: "(attribute_not_exists(#leaseFence) OR #leaseFence <= :leaseFence)",
    holds: (written: number, fence: number): boolean => written <= fence,
  },
} as const;

/** Writes of these two files that the model leaves out, and why nothing that it says depends on them. */
export const leftOut: Readonly<Record<string, string>> = {
  renewUnlessRevoked: "renew, with one more condition",
  requestRevocation: "sets one attribute, which no condition of the others asks for",
  take: "acquire or takeOver",
  takeBackSlot: "sets one attribute, which says which slots are done",
};
