/**
 * A seat's text as JSONata writes and reads it. Nothing is retyped: a sample from the client shows the place of each
 * part.
 */
import {
  type SeatRecord,
  seatFlags,
  seatSortKeys,
  seatText,
  versionDigits,
} from "@leasehold/client/internal";

/** The sort key of a semaphore's item. */
export const permitSortKey: string = seatSortKeys.semaphore;

/** A seat whose parts all differ, so that each part can be found in the client's text. */
export const sample: SeatRecord = {
  key: "key",
  sortKey: permitSortKey,
  owner: "owner",
  token: "token",
  version: 1,
  fencingToken: 1,
  acquiredAt: 12,
  expiresAt: 13,
  leaseDurationMs: 14,
  inCooldown: false,
  reentrant: false,
  data: undefined,
  revocation: undefined,
  seat: { kind: "permit", permits: 11 },
};
/** The same seat of a reentrant owner. */
export const reentrantSample: SeatRecord = { ...sample, reentrant: true };
/** Another lease. */
export const otherSample: SeatRecord = { ...sample, token: "other", owner: "dead" };

const flagsSample = seatFlags.reentrant | seatFlags.ownClock;
type SeatField = "kind" | "permits" | "acquiredAt" | "expiresAt" | "leaseDurationMs" | "flags" | "owner";

/** The parts of a seat's text after its version, in their order. */
const fields: readonly unknown[] = JSON.parse(
  seatText({ ...reentrantSample, ownClock: true }, undefined).slice(versionDigits + 1),
);
const places: Readonly<Record<SeatField, number>> = {
  kind: fields.indexOf(sample.seat.kind),
  permits: fields.indexOf(sample.seat.permits),
  acquiredAt: fields.indexOf(sample.acquiredAt),
  expiresAt: fields.indexOf(sample.expiresAt),
  leaseDurationMs: fields.indexOf(sample.leaseDurationMs),
  flags: fields.indexOf(flagsSample),
  owner: fields.indexOf(sample.owner),
};
const inOrder = (Object.keys(places) as SeatField[]).sort((one, other) => places[one] - places[other]);
if (inOrder.some((field, index) => places[field] !== index) || inOrder.at(-1) !== "owner") {
  throw new Error(`a seat's text has other fields: ${JSON.stringify(fields)}`);
}

/** JSONata for the fields of a seat's text. */
export function seatFields(text: string): string {
  return `$parse($substring(${text}, ${versionDigits + 1}))`;
}

/** JSONata for one of the fields of `seatFields`. */
export function fieldOf(seat: string, field: SeatField): string {
  return `${seat}[${places[field]}]`;
}

/** JSONata for the version in a seat's text. */
export function seatVersion(text: string): string {
  return `$number($substring(${text}, 0, ${versionDigits}))`;
}

/** JSONata: whether a seat's flags have one of them. */
export function hasFlag(flags: string, flag: keyof typeof seatFlags): string {
  return `$floor(${flags} / ${seatFlags[flag]}) % 2 = 1`;
}

/** JSONata for a version in a seat's text: a later text is the greater one. */
export function versionText(version: string): string {
  return `$pad($string(${version}), -${versionDigits}, '0')`;
}

/** JSONata for the text of a new seat. */
export function newText(version: string, parts: Readonly<Record<SeatField, string>>): string {
  return `${versionText(version)} & ' ' & $string([${inOrder.map((field) => parts[field]).join(", ")}])`;
}

/** JSONata for the text of a prolonged seat; its payload and all parts that are not given stay unchanged. */
export function prolongedText(
  text: string,
  version: string,
  parts: Partial<Record<SeatField, string>>,
): string {
  const kept = inOrder.map((field, index) => {
    const given = parts[field];
    if (given !== undefined) return `$string(${given})`;
    if (index === 0) return `$substring($f[0], ${versionDigits})`;
    return index < inOrder.length - 1 ? `$f[${index}]` : `$join($f[[${index}..$count($f) - 1]], ',')`;
  });
  return `($f := $split(${text}, ','); ${versionText(version)} & $join([${kept.join(", ")}], ','))`;
}

/** This many leases of workflows fit into Step Functions' limit for one read, even with the longest names. */
export const mostWorkflowPermits = 500;

/** A workflow takes one permit. */
export const onePermit = 1;
