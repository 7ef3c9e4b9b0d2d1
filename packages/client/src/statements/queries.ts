/** What reads say to DynamoDB, and the condition of the user's own writes. */
import { historySortKeyPrefix, leaseSortKey } from "../schema.ts";
import { seatSortKeys } from "../seats/schema.ts";
import type { QueryRequest, ScanRequest, UpdateRequest } from "../store.ts";
import { namesIn } from "./statement.ts";

const recordProjection =
  "#token, #version, #fence, #owner, #acquiredAt, #expiresAt, #ownClock, #leaseDurationMs, " +
  "#revocation, #releasedToken, #brokenToken, #doneSlot, #lastEnd";

/** Reads what a lease is judged by, and not the payload: that may have 392 KiB, and Step Functions takes 256 KiB. */
export function recordOnly(): {
  readonly projection: string;
  readonly names: Readonly<Record<string, string>>;
} {
  return { projection: recordProjection, names: namesIn(recordProjection) };
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

/** Finds every item of a table, whatever it is. */
export function everyItem(): Pick<ScanRequest, "filter" | "names" | "values"> {
  const filter = "attribute_exists(#pk)";
  return { filter, names: namesIn(filter), values: {} };
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

/** "Only if no later holder has written", for the user's own item, and the assignment that makes it hold next time. */
export function noLaterHolder(
  attribute: string,
  fencingToken: number,
): Omit<UpdateRequest, "key" | "returnsItem"> {
  return {
    condition: "(attribute_not_exists(#leaseFence) OR #leaseFence <= :leaseFence)",
    update: "SET #leaseFence = :leaseFence",
    names: { "#leaseFence": attribute },
    values: { ":leaseFence": fencingToken },
  };
}
