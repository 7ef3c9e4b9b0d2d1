/** Permits in answers: one lease, in the form of a lock's record, or all leases of a semaphore, judged. */
import { fencePrefix, revocationPrefix, seatCounters, textPrefix } from "@leasehold/client/internal";
import { attributeNames, cooldownToken } from "@leasehold/client/schema";
import { type Json, jsonata, literal, objectOf } from "./asl.ts";
import { type LeaseTerms, variable } from "./lease-requests.ts";
import type { PermitTerms } from "./permit-requests.ts";
import {
  fieldOf,
  hasFlag,
  onePermit,
  permitSortKey,
  sample,
  seatFields,
  seatVersion,
} from "./permit-seats.ts";

const { releasedToken, brokenToken, timeToLive } = attributeNames;
const item = "$states.result.Item";

/** The lease of the variable `token` in a look's answer, in the form of a lock's record: `ofRecord` reads both. */
export function permitRecord(terms: Pick<LeaseTerms, "variablePrefix"> = {}): string {
  return recordOf(variable(terms, "token"));
}

/** The lease of an owner in a look at all leases, in the same form; without leases in their cooldown. */
export function permitRecordOfOwner(owner: string): string {
  const isOwn = `${fieldOf(seatFields("$value.S"), "owner")} = ${owner}`;
  const token = eachSeat(item, `${isOwn} and $not(${isCooling("$seatToken")}) ? $seatToken`);
  return recordOf(`${token}[0]`);
}

function isCooling(token: string): string {
  return `$substring(${token}, 0, ${cooldownToken("").length}) = ${literal(cooldownToken(""))}`;
}

/**
 * JSONata for a list with an expression's value for each seat of an item, from `$seatToken` and its text `$value.S`.
 */
function eachSeat(seats: string, expression: string): string {
  const prefix = literal(textPrefix);
  const { length } = textPrefix;
  return (
    `[$each(${seats}, function($value, $name) { $substring($name, 0, ${length}) = ${prefix} ? ` +
    `($seatToken := $substring($name, ${length}); ${expression}) })]`
  );
}

function recordOf(token: string): string {
  const attribute = (prefix: string): string => `$lookup($item, ${literal(prefix)} & $of)`;
  const marks = objectOf(
    Object.fromEntries([releasedToken, brokenToken, timeToLive].map((name) => [name, `$item.${name}`])),
  );
  const lease = objectOf({
    [attributeNames.token]: "{'S': $of}",
    [attributeNames.version]: `{'N': $string(${seatVersion("$text.S")})}`,
    [attributeNames.fence]: attribute(fencePrefix),
    [attributeNames.owner]: `{'S': ${fieldOf("$seat", "owner")}}`,
    [attributeNames.expiresAt]: `{'N': $string(${fieldOf("$seat", "expiresAt")})}`,
    [attributeNames.revocation]: attribute(revocationPrefix),
    [seatAttribute]: "$text",
  });
  return jsonata(
    `($item := ${item}; $of := ${token}; $text := ${attribute(textPrefix)}; ` +
      `$seat := $exists($text) ? ${seatFields("$text.S")}; ` +
      `$merge([${marks}, $exists($text) ? ${lease} : {}]))`,
  );
}

/** The attribute of such a record with the seat's text. */
const seatAttribute = "seat";

/** JSONata for the text of the lease in the variable `record`; empty for a lock's. */
export const recordedSeat: string = `$exists($record.${seatAttribute}) ? $record.${seatAttribute}.S : ''`;

/** The renewed lease of the variable `token` in an answer. */
export const renewedSeat: string = `$lookup($states.result.Attributes, ${literal(textPrefix)} & $token).S`;

/** JSONata for when a renewed lease ends. */
export const renewedSeatExpiry: string = fieldOf(seatFields(renewedSeat), "expiresAt");

/** The parts of the handle of the workflow's own permit in an item or an answer, as JSONata. */
export function permitParts(
  shown: string,
  terms: Pick<LeaseTerms, "variablePrefix">,
): Readonly<Record<"owner" | "token" | "version" | "fence" | "acquiredAt" | "expiresAt", string>> {
  const token = variable(terms, "token");
  const text = `$lookup(${shown}, ${literal(textPrefix)} & ${token}).S`;
  return {
    token,
    owner: fieldOf(seatFields(text), "owner"),
    version: seatVersion(text),
    fence: `$number($lookup(${shown}, ${literal(fencePrefix)} & ${token}).N)`,
    acquiredAt: fieldOf(seatFields(text), "acquiredAt"),
    expiresAt: fieldOf(seatFields(text), "expiresAt"),
  };
}

/** The members of a permit's handle that a lock's handle does not have. */
export const permitHandle: { readonly [name: string]: Json } = {
  sortKey: permitSortKey,
  seat: { ...sample.seat, permits: onePermit, reentrant: false },
};

/**
 * Judges whether one more permit is available, as the client does, by an answer with every lease of the semaphore:
 *
 *     own         this token's own lease, as an attribute of its own, where its write has landed
 *     isOver      that lease has ended before its keeper was started, or was ended
 *     isReadable  the counter equals what the leases take
 *     lacking     how many permits have to become free; none where it is 0 or less
 *     expired     how many permits the expired leases take
 *     passed      the expired lease that ended first
 *     next        the owner of the lease that ends next
 */
export function judgedPermits(terms: PermitTerms & { readonly clockSkewMs: number }): string {
  const { permits, clockSkewMs } = terms;
  const token = variable(terms, "token");
  const flags = fieldOf("$seat", "flags");
  const seat = objectOf({
    token: "$seatToken",
    version: seatVersion("$value.S"),
    fence: `$number($lookup($item, ${literal(fencePrefix)} & $seatToken).N)`,
    permits: fieldOf("$seat", "permits"),
    expiresAt: fieldOf("$seat", "expiresAt"),
    owner: fieldOf("$seat", "owner"),
    reentrant: hasFlag(flags, "reentrant"),
    ownClock: hasFlag(flags, "ownClock"),
  });
  const each = `($seat := ${seatFields("$value.S")}; ${seat})`;
  const text = `$lookup($item, ${literal(textPrefix)} & ${token})`;
  const isAlive = `${fieldOf(seatFields(`${text}.S`), "expiresAt")} > $millis()`;
  const counter = `$item.${seatCounters.permit}.N`;
  const judged = objectOf({
    own: `$exists(${text}) and ${isAlive} ? $own`,
    isOver: `$exists(${text}) or $item.${releasedToken}.S = ${token}`,
    isReadable: "$sum([$seats.permits]) = $taken",
    lacking: `$taken - ${permits - onePermit}`,
    expired: "$sum([$expired.permits])",
    passed: "$expired[0]",
    next: `$seats[$not(token in $expired.token)][0].owner`,
  });
  const byEnd = "function($one, $other) { $one.expiresAt > $other.expiresAt }";
  return jsonata(
    `($item := ${item}; ` +
      `$own := {${literal(textPrefix)} & ${token}: ${text}, ${literal(fencePrefix)} & ${token}: $lookup($item, ${literal(fencePrefix)} & ${token})}; ` +
      `$seats := $sort(${eachSeat("$item", each)}, ${byEnd}); ` +
      `$expired := $seats[$not(ownClock) and expiresAt + ${clockSkewMs} < $millis()]; ` +
      `$taken := $exists(${counter}) ? $number(${counter}) : 0; ` +
      `${judged})`,
  );
}
