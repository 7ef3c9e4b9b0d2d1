/**
 * The requests of a keeper, and of the machine for ended executions. They serve locks and permits: the variable
 * `sortKey` distinguishes the two. The variable `record` has a lease of either kind in the form of a lock's. The
 * variable `seat` has a permit's own text, which its next renewal writes again.
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

/** The lease's requests. */
export function keptRequests(terms: LeaseTerms): {
  /** Prolongs it, unless its holder was asked to stop. */
  readonly renew: Json;
  /** Prolongs it, even if its holder was asked to stop. */
  readonly renewHeld: Json;
  readonly release: Json;
  /** Reads it without its payload, seeing every earlier write. */
  readonly inspect: Json;
} {
  return {
    renew: chosen(isPermit, renewPermitArguments(terms), renewArguments(terms)),
    renewHeld: chosen(isPermit, renewHeldPermitArguments(terms), renewHeldArguments(terms)),
    release: chosen(isPermit, releaseKeptPermitArguments(terms), releaseArguments(terms, false)),
    inspect: chosen(isPermit, inspectPermitArguments(terms), inspectArguments(terms)),
  };
}

/** The result of that read. */
export const keptRecord: Json = chosen(isPermit, permitRecord(), record);

const recordedTtl = ofRecord("timeToLive", "N");

/** Assigns the parts of the variable `record` that the next renewal needs. */
export const recordedState: Readonly<Record<"version" | "expiresAt" | "seat" | "timeToLive", Json>> = {
  version: jsonata(ofRecord("version", "N")),
  expiresAt: jsonata(ofRecord("expiresAt", "N")),
  seat: jsonata(recordedSeat),
  timeToLive: jsonata(`$exists(${recordedTtl}) ? ${recordedTtl} : 0`),
};

const written = "$states.result.Attributes";

/** Assigns the same parts of a renewal's answer, except the version. */
export const renewedState: Readonly<Record<"expiresAt" | "seat" | "timeToLive", Json>> = {
  expiresAt: chosen(isPermit, jsonata(renewedSeatExpiry), jsonata(attributeOf(written, "expiresAt", "N"))),
  seat: chosen(isPermit, jsonata(renewedSeat), ""),
  timeToLive: jsonata(attributeOf(written, "timeToLive", "N")),
};
