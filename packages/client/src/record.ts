import { attributeNames, isClosedToken } from "./schema.ts";
import type { Item } from "./store.ts";

/** A lock's state as the table shows it while its lease has not been released. */
export interface LeaseRecord {
  /** The lock's name. */
  readonly key: string;
  /** Which of the key's leases it is: "lease", unless it is one of several. */
  readonly place: string;
  /** Readable label of the holder. */
  readonly owner: string;
  /** Unique id of the acquisition; `forceRelease` wants it. */
  readonly token: string;
  /** Grows with every write of this token. */
  readonly version: number;
  /** Grows with every acquisition of the key. */
  readonly fencingToken: number;
  /** Epoch milliseconds of the holder's clock. */
  readonly acquiredAt: number;
  /** Epoch milliseconds of the holder's clock. */
  readonly expiresAt: number;
  readonly leaseDurationMs: number;
  /** True for a lock that was released early and stays closed until `expiresAt` (`lockAtLeastForMs`). */
  readonly closed: boolean;
  /** The holder's payload, if it stored one. */
  readonly data: unknown;
  /** Why the holder was asked to stop, if it was. */
  readonly revocation: string | undefined;
}

/** Reads a lease item; undefined for a missing item and for the tombstone of a released lock. */
export function readRecord(item: Item | undefined): LeaseRecord | undefined {
  const token = item?.[attributeNames.token];
  if (item === undefined || typeof token !== "string") return undefined;
  const data = item[attributeNames.data];
  const revocation = item[attributeNames.revocation];
  return {
    key: String(item[attributeNames.partitionKey]),
    place: String(item[attributeNames.sortKey]),
    owner: String(item[attributeNames.owner]),
    token,
    version: Number(item[attributeNames.version]),
    fencingToken: Number(item[attributeNames.fence]),
    acquiredAt: Number(item[attributeNames.acquiredAt]),
    expiresAt: Number(item[attributeNames.expiresAt]),
    leaseDurationMs: Number(item[attributeNames.leaseDurationMs]),
    closed: isClosedToken(token),
    data: data === undefined ? undefined : JSON.parse(String(data)),
    revocation: revocation === undefined ? undefined : String(revocation),
  };
}

/** Whether an item shows that this very acquisition holds the lock: then a write whose answer was lost has landed. */
export function isHeldBy(item: Item | undefined, token: string): boolean {
  return item?.[attributeNames.token] === token;
}

/** Whether a token's own release has landed, whatever has happened to the lock since. */
export function wasReleasedByHolder(item: Item | undefined, token: string): boolean {
  return lastReleasedToken(item) === token && !wasBroken(item, token);
}

/** Whether a token's lease was broken by somebody else. */
export function wasBroken(item: Item | undefined, token: string): boolean {
  return item?.[attributeNames.brokenToken] === token;
}

/** The latest slot that was completed under this key. */
export function lastDoneSlot(item: Item | undefined): string | undefined {
  const slot = item?.[attributeNames.doneSlot];
  return slot === undefined ? undefined : String(slot);
}

/** The token that was released last, whatever has happened to the lock since. */
export function lastReleasedToken(item: Item | undefined): string | undefined {
  const token = item?.[attributeNames.releasedToken];
  return token === undefined ? undefined : String(token);
}
