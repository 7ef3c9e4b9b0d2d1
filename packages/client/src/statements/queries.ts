/** What reads say to DynamoDB, and the condition of the user's own writes. */
import type { ScanRequest, UpdateRequest } from "../base/store.ts";
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

/** Finds every item of a table, whatever it is. */
export function everyItem(): Pick<ScanRequest, "filter" | "names" | "values"> {
  const filter = "attribute_exists(#pk)";
  return { filter, names: namesIn(filter), values: {} };
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
