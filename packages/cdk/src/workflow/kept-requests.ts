/**
 * The requests of a keeper, and of what cleans up behind an execution, which serve locks and permits alike: the variable
 * `sortKey` says which of the two the lease is. A lease of either kind is in the variable `record` as a lock's is, and a
 * permit's own text, which its next renewal writes again, in the variable `seat`.
 */
import { leaseSortKey } from "@leasehold/client/schema";
import { chosen, type Json, jsonata } from "./asl.ts";
import {
  attributeOf,
  inspectArguments,
  type LeaseTerms,
  ofRecord,
  record,
  releaseArguments,
  renewArguments,
  renewHeldArguments,
} from "./lease-requests.ts";
import { permitRecord, recordedSeat, renewedSeat, renewedSeatExpiry } from "./permit-records.ts";
import {
  inspectPermitArguments,
  releaseKeptPermitArguments,
  renewHeldPermitArguments,
  renewPermitArguments,
} from "./permit-requests.ts";
import { permitSortKey } from "./permit-seats.ts";

/** Whether the lease is a permit. */
export const isPermit: string = `$sortKey = '${permitSortKey}'`;

/** JSONata for the sort key of a lease, by its handle. */
export function sortKeyOf(lease: string): string {
  return `($exists(${lease}.sortKey) ? ${lease}.sortKey : '${leaseSortKey}')`;
}

/** Prolongs the lease; not while its holder is asked to stop. */
export function renewKeptArguments(terms: LeaseTerms): Json {
  return chosen(isPermit, renewPermitArguments(terms), renewArguments(terms));
}

/** Prolongs the lease, whether its holder is asked to stop or not. */
export function renewHeldKeptArguments(terms: LeaseTerms): Json {
  return chosen(isPermit, renewHeldPermitArguments(terms), renewHeldArguments(terms));
}

/** Lets the lease go. */
export function releaseKeptArguments(terms: LeaseTerms): Json {
  return chosen(isPermit, releaseKeptPermitArguments(terms), releaseArguments(terms, false));
}

/** Reads the lease without its payload, seeing every earlier write. */
export function inspectKeptArguments(terms: LeaseTerms): Json {
  return chosen(isPermit, inspectPermitArguments(terms), inspectArguments(terms));
}

/** What that look has found. */
export const keptRecord: Json = chosen(isPermit, permitRecord(), record);

const recordedTtl = ofRecord("timeToLive", "N");

/** Assigns what the next renewal needs of the variable `record`. */
export const recordedState: Readonly<Record<"version" | "expiresAt" | "seat" | "timeToLive", Json>> = {
  version: jsonata(ofRecord("version", "N")),
  expiresAt: jsonata(ofRecord("expiresAt", "N")),
  seat: jsonata(recordedSeat),
  timeToLive: jsonata(`$exists(${recordedTtl}) ? ${recordedTtl} : 0`),
};

const written = "$states.result.Attributes";

/** Assigns the same of the answer to a renewal, but for the version. */
export const renewedState: Readonly<Record<"expiresAt" | "seat" | "timeToLive", Json>> = {
  expiresAt: chosen(isPermit, jsonata(renewedSeatExpiry), jsonata(attributeOf(written, "expiresAt", "N"))),
  seat: chosen(isPermit, jsonata(renewedSeat), ""),
  timeToLive: jsonata(attributeOf(written, "timeToLive", "N")),
};
