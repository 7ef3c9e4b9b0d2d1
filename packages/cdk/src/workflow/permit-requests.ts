/**
 * The semaphore's own statements as arguments of Step Functions' DynamoDB integration, as lease-requests.ts has those
 * of the lock. JSONata names the attributes whose names contain a token.
 */
import {
  clearSeats,
  fencePrefix,
  HeldSeat,
  keptShare,
  ownerAttribute,
  permitLimits,
  renewSeatUnlessRevoked,
  revocationPrefix,
  SeatForm,
  type SeatRecord,
  seatFlags,
  textPrefix,
} from "@leasehold/client/internal";
import { attributeNames, cooldownToken } from "@leasehold/client/schema";
import { chosen, type Json, jsonata, literal } from "./asl.ts";
import {
  grant,
  keyOf,
  type LeaseTerms,
  type Names,
  timeToLiveAfter,
  updateItem,
  type Values,
  variable,
} from "./lease-requests.ts";
import {
  fieldOf,
  hasFlag,
  newText,
  onePermit,
  otherSample,
  permitSortKey,
  prolongedText,
  reentrantSample,
  sample,
  seatFields,
  versionText,
} from "./permit-seats.ts";

const { releasedToken, brokenToken, timeToLive } = attributeNames;

/** JSONata for the names of the attributes of a seat. */
function namesOf(token: string, owner: string, of: SeatRecord = sample): Names {
  return {
    [textPrefix + of.token]: `${literal(textPrefix)} & ${token}`,
    [fencePrefix + of.token]: `${literal(fencePrefix)} & ${token}`,
    [revocationPrefix + of.token]: `${literal(revocationPrefix)} & ${token}`,
    [ownerAttribute("permit", of.owner)]: `${literal(ownerAttribute("permit", ""))} & ${owner}`,
  };
}

/** The common terms of a workflow's requests for permits. */
export interface PermitTerms extends LeaseTerms {
  /** How many permits may be held at once. */
  readonly permits: number;
}

function formOf(permits: number): SeatForm {
  return new SeatForm({
    key: "key",
    sortKey: permitSortKey,
    kind: "permit",
    permits: onePermit,
    capacity: permits,
    limits: permitLimits,
  });
}

/** The text of the workflow's own seat. */
function ownText(
  terms: LeaseTerms,
  version: string,
  times: Readonly<Record<"acquiredAt" | "expiresAt" | "leaseDurationMs", string>>,
): string {
  const [kind, permits] = [literal(sample.seat.kind), String(onePermit)];
  return newText(version, { ...times, kind, permits, flags: "0", owner: variable(terms, "owner") });
}

/** Values of a grant; the workflow has the variables key, token, version, owner and waitingSince. */
function permitGrantValues(terms: PermitTerms, leaseDurationMs: number): Values {
  return {
    ":seat": ownText(terms, `${variable(terms, "version")} + 1`, {
      acquiredAt: "$millis()",
      expiresAt: `$millis() + ${leaseDurationMs}`,
      leaseDurationMs: String(leaseDurationMs),
    }),
    ":fromFence": "$millis()",
    ":byFence": "1",
    ":ttl": timeToLiveAfter(String(leaseDurationMs), terms),
    ":permitsOf": String(terms.permits),
    ":ifReleasedToken": variable(terms, "token"),
  };
}

/** Takes a free permit. */
export function acquirePermitArguments(terms: PermitTerms, leaseDurationMs: number): Json {
  const values = {
    ...permitGrantValues(terms, leaseDurationMs),
    ":zero": "0",
    ":permits": String(onePermit),
    ":most_permits": String(terms.permits - onePermit),
  };
  return updateItem(terms, formOf(terms.permits).acquire(grant, []), values, true, ownNames(terms));
}

/** Takes a permit in place of the lease in the variable `passed`, which was judged expired. */
export function takeOverPermitArguments(terms: PermitTerms, leaseDurationMs: number): Json {
  const passed = variable(terms, "passed");
  const names = { ...ownNames(terms), ...passedNames(terms) };
  const values = {
    ...permitGrantValues(terms, leaseDurationMs),
    ":zero": "0",
    ":permits": `${onePermit} - ${passed}.permits`,
    ":most_permits": `${terms.permits - onePermit} + ${passed}.permits`,
    ":f1": `${passed}.fence`,
    ":s1": versionText(`${passed}.version + 1`),
  };
  return ofPassed(terms, (seat) =>
    updateItem(terms, formOf(terms.permits).acquire(grant, [seat]), values, true, names),
  );
}

/** Removes the lease in the variable `passed`, which was judged expired. */
export function clearPermitArguments(terms: PermitTerms): Json {
  const passed = variable(terms, "passed");
  const values = {
    ":zero": "0",
    ":permits": `-${passed}.permits`,
    ":f1": `${passed}.fence`,
    ":s1": versionText(`${passed}.version + 1`),
  };
  return ofPassed(terms, (seat) =>
    updateItem(
      terms,
      clearSeats({ key: "key", sortKey: permitSortKey }, [seat]),
      values,
      false,
      passedNames(terms),
    ),
  );
}

function ownNames(terms: LeaseTerms): Names {
  return namesOf(variable(terms, "token"), variable(terms, "owner"));
}

function passedNames(terms: LeaseTerms): Names {
  const passed = variable(terms, "passed");
  return namesOf(`${passed}.token`, `${passed}.owner`, otherSample);
}

/** A reentrant owner's lease has one more attribute. */
function ofPassed(terms: LeaseTerms, request: (seat: SeatRecord) => Json): Json {
  const isReentrant = `${variable(terms, "passed")}.reentrant`;
  return chosen(isReentrant, request({ ...otherSample, reentrant: true }), request(otherSample));
}

/** Takes back an acquisition whose answer was lost: ends the token's lease, from whichever acquisition it comes. */
export function cancelPermitArguments(terms: PermitTerms): Json {
  const write = formOf(terms.permits).cancel({ token: sample.token, now: 1, retentionMs: 1 });
  const values = {
    ":zero": "0",
    ":permits": String(-onePermit),
    ":releasedToken": variable(terms, "token"),
  };
  return updateItem(terms, write, values, false, ownNames(terms));
}

/** Revokes a token that has no lease, so that a late copy of its acquisition is refused. */
export function revokePermitArguments(terms: PermitTerms): Json {
  const write = formOf(terms.permits).revoke({ token: sample.token, now: 1, retentionMs: 1 });
  const values = {
    ":releasedToken": variable(terms, "token"),
    ":ttl": timeToLiveAfter("0", terms),
  };
  return updateItem(terms, write, values, false, ownNames(terms));
}

/** Releases the workflow's own permit. */
export function releasePermitArguments(terms: LeaseTerms): Json {
  return endingPermit(terms, sample, {
    ":zero": "0",
    ":permits": String(-onePermit),
    ":releasedToken": variable(terms, "token"),
    ":seatFence": variable(terms, "fence"),
  });
}

/** Releases the workflow's own permit, but keeps its cooldown until the variable `cooldownUntil`. */
export function closePermitArguments(terms: LeaseTerms): Json {
  const [token, until] = [variable(terms, "token"), variable(terms, "cooldownUntil")];
  const write = new HeldSeat("key", permitSortKey).release({
    shown: sample,
    now: 1,
    retentionMs: 1,
    slot: undefined,
    cooldown: { until: 2, forMs: 1 },
  });
  const values = {
    ":closedSeat": ownText(terms, "1", {
      acquiredAt: "$lease.acquiredAt",
      expiresAt: until,
      leaseDurationMs: `$max([0, ${until} - $millis()])`,
    }),
    ":releasedToken": token,
    ":seatFence": variable(terms, "fence"),
  };
  const closed = { ...sample, token: cooldownToken(sample.token) };
  const names = {
    ...ownNames(terms),
    ...namesOf(`${literal(cooldownToken(""))} & ${token}`, variable(terms, "owner"), closed),
  };
  return updateItem(terms, write, values, false, names);
}

/** Releases the lease whose text is in the variable `seat`; the variables token and fence prove it. */
export function releaseKeptPermitArguments(terms: LeaseTerms): Json {
  const seat = seatFields("$seat");
  const values = {
    ":zero": "0",
    ":permits": `-${fieldOf(seat, "permits")}`,
    ":releasedToken": "$token",
    ":seatFence": "$fence",
  };
  const release = (shown: SeatRecord): Json => endingPermit(terms, shown, values, fieldOf(seat, "owner"));
  return chosen(hasFlag(fieldOf(seat, "flags"), "reentrant"), release(reentrantSample), release(sample));
}

function endingPermit(
  terms: LeaseTerms,
  shown: SeatRecord,
  values: Values,
  owner: string = variable(terms, "owner"),
): Json {
  const end = { shown, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };
  const names = namesOf(variable(terms, "token"), owner);
  return updateItem(terms, new HeldSeat("key", permitSortKey).release(end), values, false, names);
}

/**
 * Prolongs the lease of the variables token, fence, version, leaseDurationMs, seat and timeToLive, unless its holder
 * was asked to stop.
 */
export function renewPermitArguments(terms: LeaseTerms): Json {
  return permitRenewal(terms, renewSeatUnlessRevoked);
}

/** Prolongs the same lease, even if its holder was asked to stop. */
export function renewHeldPermitArguments(terms: LeaseTerms): Json {
  return permitRenewal(terms, (form, renewal) => form.renew(renewal));
}

/** As the client does: it extends the ttl only when its end is near, by the missing time; an unseen ttl stays. */
function permitRenewal(terms: LeaseTerms, write: typeof renewSeatUnlessRevoked): Json {
  const form = new HeldSeat("key", permitSortKey);
  form.confirmed({ [timeToLive]: 1 });
  const expiresAt = 10_000;
  const renewed = { shown: sample, version: 2, expiresAt, leaseDurationMs: 1, retentionMs: 1 };
  const wanted = timeToLiveAfter("$leaseDurationMs", terms);
  const isNear = `$timeToLive < ${timeToLiveAfter("$leaseDurationMs", { ...terms, retentionMs: keptShare * terms.retentionMs })}`;
  const flags = fieldOf("$f", "flags");
  const isReentrant = `$floor($number(${flags}) / ${seatFlags.reentrant}) % 2`;
  const values: Values = {
    ":seat": prolongedText("$seat", "$version + 1", {
      expiresAt: "$millis() + $leaseDurationMs",
      leaseDurationMs: "$leaseDurationMs",
      flags: `${isReentrant} * ${seatFlags.reentrant}`,
    }),
    ":fromTtl": wanted,
    ":byTtl": `$timeToLive > 0 and ${isNear} ? ${wanted} - $timeToLive : 0`,
    ":seatFence": "$fence",
    ":newSeat": versionText("$version + 1"),
  };
  return updateItem(terms, write(form, renewed), values, true, namesOf("$token", "''"));
}

/** Reads every lease of the semaphore. */
export function inspectPermitsArguments(terms: LeaseTerms): Json {
  return { TableName: terms.tableName, Key: keyOf(terms, permitSortKey), ConsistentRead: true };
}

/** Reads only the lease of the variable `token`: with all leases, the item may be too large to read. */
export function inspectPermitArguments(terms: LeaseTerms): Json {
  const token = variable(terms, "token");
  const names = {
    "#text": jsonata(`${literal(textPrefix)} & ${token}`),
    "#fence": jsonata(`${literal(fencePrefix)} & ${token}`),
    "#revocation": jsonata(`${literal(revocationPrefix)} & ${token}`),
    ...Object.fromEntries([releasedToken, brokenToken, timeToLive].map((name) => [`#${name}`, name])),
  };
  return {
    TableName: terms.tableName,
    Key: keyOf(terms, permitSortKey),
    ConsistentRead: true,
    ProjectionExpression: Object.keys(names).join(", "),
    ExpressionAttributeNames: names,
  };
}
