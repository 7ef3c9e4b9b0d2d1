/**
 * The statements of administrators, about the leases of others. The writes are for a lease in an item of its own;
 * seats/seat-writes.ts has those for a seat.
 *
 *     break     the token is the given one; the item keeps who has had the lock until then
 *     ask       the token is the given one; only the reason to stop changes
 *     takeBack  the slot that is done is the given one; only that slot changes
 */
import { historySortKeyPrefix, isCooldownToken, leaseItemKey, leaseSortKey } from "../base/schema.ts";
import type { QueryRequest, ScanRequest } from "../base/store.ts";
import { seatSortKeys } from "../primitives/seats/seat.ts";
import {
  endText,
  type LeaseAddress,
  mineByToken,
  noHolder,
  noWishes,
  slotDone,
  tokenRevoked,
} from "../statements/lock.ts";
import { namesIn, type Part, say, Write } from "../statements/statement.ts";

/** Keeps the last holder. Unlike `endKept`, it accepts an unreadable lease, which another program has written. */
const brokenKept: Part = {
  set:
    "#lastOwner = if_not_exists(#owner, :fromLastOwner), " +
    "#lastAcquiredAt = if_not_exists(#acquiredAt, :fromLastAcquiredAt), #lastEnd = :lastEnd",
};
const breaks = say({ set: "#brokenToken = :brokenToken" }, noHolder, noWishes, mineByToken);
const ended = say(...breaks.parts, tokenRevoked, brokenKept);

/**
 * Ends another holder's lease. The item says that it was broken, so that the holder does not mistake this for its own
 * release. The item's ttl stays as its primitive has set it.
 */
export function breakLease({ key, sortKey }: LeaseAddress, token: string, now: number): Write {
  const itemKey = leaseItemKey(key, sortKey);
  const values = { ":ifToken": token, ":brokenToken": token };
  // A lock in its cooldown was released before: by that mark its holder recognises its own release.
  if (isCooldownToken(token)) return new Write(itemKey, breaks, values);
  return new Write(itemKey, ended, {
    ...values,
    ":releasedToken": token,
    ":lastEnd": endText("broken", now),
    ":fromLastOwner": "",
    ":fromLastAcquiredAt": "",
  });
}

const asksToStop = say({ set: "#revocation = :revocation" }, mineByToken);

/** Asks the holder of one particular lease to stop. */
export function requestRevocation({ key, sortKey }: LeaseAddress, token: string, reason: string): Write {
  return new Write(leaseItemKey(key, sortKey), asksToStop, { ":revocation": reason, ":ifToken": token });
}

/** A slot that no longer counts as done. */
interface SlotTakenBack {
  readonly key: string;
  /** The slot that is done, as the caller has read it. */
  readonly doneSlot: string;
  /** The slot that is done from then on; undefined for none. */
  readonly to: string | undefined;
}

const slotAsSeen: Part = { when: "#doneSlot = :ifDoneSlot" };
const takesSlotBack = say(slotDone, slotAsSeen);
const takesEverySlotBack = say({ remove: "#doneSlot" }, slotAsSeen);

/** Makes an earlier slot, or none, the latest that is done. A holder and its lease stay as they are. */
export function takeBackSlot({ key, doneSlot, to }: SlotTakenBack): Write {
  const write = new Write(leaseItemKey(key), to === undefined ? takesEverySlotBack : takesSlotBack, {
    ":ifDoneSlot": doneSlot,
    ...(to === undefined ? {} : { ":doneSlot": to }),
  });
  return write.returning();
}

/** Finds the leases whose key starts with a prefix: the locks, or those of all primitives. */
export function leasesByPrefix(
  prefix: string,
  everySortKey = false,
): Pick<ScanRequest, "filter" | "names" | "values"> {
  const { semaphore, readWrite } = seatSortKeys;
  const isAsked = everySortKey
    ? "(attribute_exists(#token) OR #sk = :semaphore OR #sk = :readWrite)"
    : "attribute_exists(#token) AND #sk = :lease";
  const filter = prefix === "" ? isAsked : `${isAsked} AND begins_with(#pk, :prefix)`;
  return {
    filter,
    names: namesIn(filter),
    values: {
      ...(everySortKey ? { ":semaphore": semaphore, ":readWrite": readWrite } : { ":lease": leaseSortKey }),
      ...(prefix === "" ? {} : { ":prefix": prefix }),
    },
  };
}

/** Finds everything under a key but its history, which may be long. */
export function leasesOf(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  const keyCondition = "#pk = :key AND #sk < :history";
  return {
    keyCondition,
    names: namesIn(keyCondition),
    values: { ":key": key, ":history": historySortKeyPrefix },
  };
}
