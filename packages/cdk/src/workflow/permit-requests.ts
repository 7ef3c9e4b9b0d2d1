/**
 * The semaphore's own expressions as arguments of Step Functions' DynamoDB integration, as lease-requests.ts has the
 * lock's. Samples of the client tell where a seat's text has what; attributes that hold a token get their names by
 * JSONata.
 */
import {
  clearSeats,
  fencePrefix,
  HeldSeat,
  keptShare,
  ownerAttribute,
  permitBounds,
  renewSeatUnlessRevoked,
  revocationPrefix,
  SeatForm,
  type SeatRecord,
  seatCounters,
  seatFlags,
  seatSortKeys,
  seatText,
  textPrefix,
  versionDigits,
} from "@leasehold/client/internal";
import { attributeNames, cooldownToken } from "@leasehold/client/schema";
import { chosen, type Json, jsonata, literal } from "./asl.ts";
import {
  keyOf,
  type LeaseTerms,
  type Names,
  timeToLiveAfter,
  updateItem,
  type Values,
  variable,
} from "./lease-requests.ts";

const sortKey = seatSortKeys.semaphore;
/** The sort key of a semaphore's item. */
export const permitSortKey: string = sortKey;
const { releasedToken, brokenToken, timeToLive } = attributeNames;

/** A seat whose parts all differ, so that each is found again in what the client makes of it. */
const sample: SeatRecord = {
  key: "key",
  sortKey,
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
const reentrantSample: SeatRecord = { ...sample, reentrant: true };
const otherSample: SeatRecord = { ...sample, token: "other", owner: "dead" };

const flagsSample = seatFlags.reentrant | seatFlags.ownClock;
/** What a seat's text has after its version, in its order. */
const fields: readonly unknown[] = JSON.parse(
  seatText({ ...reentrantSample, ownClock: true }, undefined).slice(versionDigits + 1),
);
const places = {
  kind: fields.indexOf(sample.seat.kind),
  permits: fields.indexOf(sample.seat.permits),
  acquiredAt: fields.indexOf(sample.acquiredAt),
  expiresAt: fields.indexOf(sample.expiresAt),
  leaseDurationMs: fields.indexOf(sample.leaseDurationMs),
  flags: fields.indexOf(flagsSample),
  owner: fields.indexOf(sample.owner),
};
type Field = keyof typeof places;
const inOrder = (Object.keys(places) as Field[]).sort((one, other) => places[one] - places[other]);
if (inOrder.some((field, index) => places[field] !== index) || inOrder.at(-1) !== "owner") {
  throw new Error(`a seat's text has other fields: ${JSON.stringify(fields)}`);
}

/** JSONata for the fields of a seat's text. */
function seatFields(text: string): string {
  return `$parse($substring(${text}, ${versionDigits + 1}))`;
}

/** JSONata for one of the fields that `seatFields` gives. */
function fieldOf(seat: string, field: Field): string {
  return `${seat}[${places[field]}]`;
}

/** JSONata for the version in a seat's text. */
function seatVersion(text: string): string {
  return `$number($substring(${text}, 0, ${versionDigits}))`;
}

/** JSONata that tells whether a seat's flags have one of them. */
function hasFlag(flags: string, flag: keyof typeof seatFlags): string {
  return `$floor(${flags} / ${seatFlags[flag]}) % 2 = 1`;
}

/** JSONata for a version as a seat's text has it: later texts are the greater ones. */
function versionText(version: string): string {
  return `$pad($string(${version}), -${versionDigits}, '0')`;
}

/** JSONata for the text of a new seat. */
function newText(version: string, parts: Readonly<Record<Field, string>>): string {
  return `${versionText(version)} & ' ' & $string([${inOrder.map((field) => parts[field]).join(", ")}])`;
}

/** JSONata for the text of a seat that is prolonged; its payload and all that is not given stay as they are. */
function prolongedText(text: string, version: string, parts: Partial<Record<Field, string>>): string {
  const kept = inOrder.map((field, index) => {
    const given = parts[field];
    if (given !== undefined) return `$string(${given})`;
    if (index === 0) return `$substring($f[0], ${versionDigits})`;
    return index < inOrder.length - 1 ? `$f[${index}]` : `$join($f[[${index}..$count($f) - 1]], ',')`;
  });
  return `($f := $split(${text}, ','); ${versionText(version)} & $join([${kept.join(", ")}], ','))`;
}

/** JSONata for the names of the attributes of a seat. */
function namesOf(token: string, owner: string, of: SeatRecord = sample): Names {
  return {
    [textPrefix + of.token]: `${literal(textPrefix)} & ${token}`,
    [fencePrefix + of.token]: `${literal(fencePrefix)} & ${token}`,
    [revocationPrefix + of.token]: `${literal(revocationPrefix)} & ${token}`,
    [ownerAttribute("permit", of.owner)]: `${literal(ownerAttribute("permit", ""))} & ${owner}`,
  };
}

/** What the requests of one workflow have in common that takes permits. */
export interface PermitTerms extends LeaseTerms {
  /** How many may be held at once. */
  readonly permits: number;
}

/** A workflow takes one permit. */
const one = 1;

function formOf(permits: number): SeatForm {
  return new SeatForm({
    key: "key",
    sortKey,
    kind: "permit",
    permits: one,
    capacity: permits,
    bounds: permitBounds,
  });
}

const grant = {
  token: sample.token,
  version: 1,
  owner: sample.owner,
  acquiredAt: 1,
  expiresAt: 1,
  leaseDurationMs: 1,
  retentionMs: 1,
  reentrant: false,
  data: undefined,
  slot: undefined,
};

/** Values of a grant; the variables key, token, version, owner and waitingSince are the workflow's. */
function grantValues(terms: PermitTerms, leaseDurationMs: number): Values {
  // Both fencing tokens of one write are the same: two fields may see two times.
  const seed = variable(terms, "waitingSince");
  return {
    ":n0": newText(`${variable(terms, "version")} + 1`, {
      kind: literal(sample.seat.kind),
      permits: String(one),
      acquiredAt: "$millis()",
      expiresAt: `$millis() + ${leaseDurationMs}`,
      leaseDurationMs: String(leaseDurationMs),
      flags: "0",
      owner: variable(terms, "owner"),
    }),
    ":fromFence": seed,
    ":byFence": "1",
    ":fromN1": seed,
    ":byN1": "1",
    ":ttl": timeToLiveAfter(String(leaseDurationMs), terms),
    ":permitsOf": String(terms.permits),
    ":ifReleasedToken": variable(terms, "token"),
  };
}

/** Takes a permit that is free. */
export function acquirePermitArguments(terms: PermitTerms, leaseDurationMs: number): Json {
  const values = {
    ...grantValues(terms, leaseDurationMs),
    ":fromPermits": "0",
    ":byPermits": String(one),
    ":ifPermits": String(terms.permits - one),
  };
  return updateItem(terms, formOf(terms.permits).acquire(grant, []), values, true, ownNames(terms));
}

/** Takes a permit in the place of the lease in the variable `passed`, which was judged expired. */
export function takeOverPermitArguments(terms: PermitTerms, leaseDurationMs: number): Json {
  const passed = variable(terms, "passed");
  const names = { ...ownNames(terms), ...passedNames(terms) };
  const values = {
    ...grantValues(terms, leaseDurationMs),
    ":fromPermits": "0",
    ":byPermits": `${one} - ${passed}.permits`,
    ":ifPermits": `${terms.permits - one} + ${passed}.permits`,
    ":ifN3": `${passed}.fence`,
    ":ifN2": versionText(`${passed}.version + 1`),
  };
  return ofPassed(terms, (seat) =>
    updateItem(terms, formOf(terms.permits).acquire(grant, [seat]), values, true, names),
  );
}

/** Removes the lease in the variable `passed`, which was judged expired. */
export function clearPermitArguments(terms: PermitTerms): Json {
  const passed = variable(terms, "passed");
  const values = {
    ":fromPermits": "0",
    ":byPermits": `-${passed}.permits`,
    ":ifN1": `${passed}.fence`,
    ":ifN0": versionText(`${passed}.version + 1`),
  };
  return ofPassed(terms, (seat) =>
    updateItem(terms, clearSeats({ key: "key", sortKey }, [seat]), values, false, passedNames(terms)),
  );
}

function ownNames(terms: LeaseTerms): Names {
  return namesOf(variable(terms, "token"), variable(terms, "owner"));
}

function passedNames(terms: LeaseTerms): Names {
  const passed = variable(terms, "passed");
  return namesOf(`${passed}.token`, `${passed}.owner`, otherSample);
}

/** A reentrant owner's lease has an attribute more. */
function ofPassed(terms: LeaseTerms, request: (seat: SeatRecord) => Json): Json {
  const isReentrant = `${variable(terms, "passed")}.reentrant`;
  return chosen(isReentrant, request({ ...otherSample, reentrant: true }), request(otherSample));
}

/**
 * Takes back an acquisition whose answer never came: ends a lease that is there, whichever acquisition of the token it is
 * of.
 */
export function cancelPermitArguments(terms: PermitTerms): Json {
  const write = formOf(terms.permits).cancel({ token: sample.token, now: 1, retentionMs: 1 });
  const values = {
    ":fromPermits": "0",
    ":byPermits": String(-one),
    ":releasedToken": variable(terms, "token"),
  };
  return updateItem(terms, write, values, false, ownNames(terms));
}

/** Revokes a token whose lease is not there, so that a late copy of its acquisition is refused. */
export function revokePermitArguments(terms: PermitTerms): Json {
  const write = formOf(terms.permits).revoke({ token: sample.token, now: 1, retentionMs: 1 });
  const values = {
    ":releasedToken": variable(terms, "token"),
    ":fromTtl": timeToLiveAfter("0", terms),
    ":byTtl": "0",
  };
  return updateItem(terms, write, values, false, ownNames(terms));
}

/** Lets the workflow's own permit go. */
export function releasePermitArguments(terms: LeaseTerms): Json {
  return ending(terms, sample, {
    ":fromPermits": "0",
    ":byPermits": String(-one),
    ":releasedToken": variable(terms, "token"),
    ":ifN1": variable(terms, "fence"),
  });
}

/** Lets the workflow's own permit go, but keeps its cooldown until the variable `cooldownUntil`. */
export function closePermitArguments(terms: LeaseTerms): Json {
  const [token, until] = [variable(terms, "token"), variable(terms, "cooldownUntil")];
  const write = new HeldSeat("key", sortKey).release({
    shown: sample,
    now: 1,
    retentionMs: 1,
    slot: undefined,
    cooldown: { until: 2, forMs: 1 },
  });
  const values = {
    ":n0": newText("1", {
      kind: literal(sample.seat.kind),
      permits: String(one),
      acquiredAt: "$lease.acquiredAt",
      expiresAt: until,
      leaseDurationMs: `$max([0, ${until} - $millis()])`,
      flags: "0",
      owner: variable(terms, "owner"),
    }),
    ":n1": variable(terms, "fence"),
    ":releasedToken": token,
    ":ifN3": variable(terms, "fence"),
  };
  const closed = { ...sample, token: cooldownToken(sample.token) };
  const names = {
    ...ownNames(terms),
    ...namesOf(`${literal(cooldownToken(""))} & ${token}`, variable(terms, "owner"), closed),
  };
  return updateItem(terms, write, values, false, names);
}

/** Lets the lease go whose text is the variable `seat`; the variables token and fence prove it. */
export function releaseKeptPermitArguments(terms: LeaseTerms): Json {
  const seat = seatFields("$seat");
  const values = {
    ":fromPermits": "0",
    ":byPermits": `-${fieldOf(seat, "permits")}`,
    ":releasedToken": "$token",
    ":ifN1": "$fence",
  };
  const release = (shown: SeatRecord): Json => ending(terms, shown, values, fieldOf(seat, "owner"));
  return chosen(hasFlag(fieldOf(seat, "flags"), "reentrant"), release(reentrantSample), release(sample));
}

function ending(
  terms: LeaseTerms,
  shown: SeatRecord,
  values: Values,
  owner: string = variable(terms, "owner"),
): Json {
  const end = { shown, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };
  const names = namesOf(variable(terms, "token"), owner);
  return updateItem(terms, new HeldSeat("key", sortKey).release(end), values, false, names);
}

/**
 * Prolongs the lease of the variables token, fence, version, leaseDurationMs, seat and timeToLive; not while its holder is
 * asked to stop.
 */
export function renewPermitArguments(terms: LeaseTerms): Json {
  return renewal(terms, renewSeatUnlessRevoked);
}

/** Prolongs the same lease, whether its holder is asked to stop or not. */
export function renewHeldPermitArguments(terms: LeaseTerms): Json {
  return renewal(terms, (form, renewal) => form.renew(renewal));
}

/** As the client: the ttl is put off only when it is near, by what it lacks; without it seen, it stays. */
function renewal(terms: LeaseTerms, write: typeof renewSeatUnlessRevoked): Json {
  const form = new HeldSeat("key", sortKey);
  form.confirmed({ [timeToLive]: 1 });
  const expiresAt = 10_000;
  const renewed = { shown: sample, version: 2, expiresAt, leaseDurationMs: 1, retentionMs: 1 };
  const wanted = timeToLiveAfter("$leaseDurationMs", terms);
  const isNear = `$timeToLive < ${timeToLiveAfter("$leaseDurationMs", { ...terms, retentionMs: keptShare * terms.retentionMs })}`;
  const flags = fieldOf("$f", "flags");
  const isReentrant = `$floor($number(${flags}) / ${seatFlags.reentrant}) % 2`;
  const values: Values = {
    ":n0": prolongedText("$seat", "$version + 1", {
      expiresAt: "$millis() + $leaseDurationMs",
      leaseDurationMs: "$leaseDurationMs",
      flags: `${isReentrant} * ${seatFlags.reentrant}`,
    }),
    ":fromTtl": wanted,
    ":byTtl": `$timeToLive > 0 and ${isNear} ? ${wanted} - $timeToLive : 0`,
    ":ifN1": "$fence",
    ":ifN0": versionText("$version + 1"),
  };
  return updateItem(terms, write(form, renewed), values, true, namesOf("$token", "''"));
}

/** Reads every lease of the semaphore. */
export function inspectPermitsArguments(terms: LeaseTerms): Json {
  return { TableName: terms.tableName, Key: keyOf(terms, sortKey), ConsistentRead: true };
}

/** Reads the lease of the variable `token`, and none of the others, with which the item may be too large to be read. */
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
    Key: keyOf(terms, sortKey),
    ConsistentRead: true,
    ProjectionExpression: Object.keys(names).join(", "),
    ExpressionAttributeNames: names,
  };
}

const item = "$states.result.Item";

/** The lease of the variable `token` that a look has found, as a lock's record is: `ofRecord` reads both. */
export function permitRecord(terms: Pick<LeaseTerms, "variablePrefix"> = {}): string {
  return recordOf(variable(terms, "token"));
}

/** The lease of an owner that a look at all has found, likewise: one that is not in its cooldown. */
export function permitRecordOfOwner(owner: string): string {
  const isOwn = `${fieldOf(seatFields("$value.S"), "owner")} = ${owner}`;
  const token = eachSeat(item, `${isOwn} and $not(${isCooling("$seatToken")}) ? $seatToken`);
  return recordOf(`${token}[0]`);
}

function isCooling(token: string): string {
  return `$substring(${token}, 0, ${cooldownToken("").length}) = ${literal(cooldownToken(""))}`;
}

/** JSONata for a list of what an expression gives for each seat of an item, from `$seatToken` and its text `$value.S`. */
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
  const marks = [releasedToken, brokenToken, timeToLive].map((name) => `${literal(name)}: $item.${name}`);
  const lease = Object.entries({
    [attributeNames.token]: "{'S': $of}",
    [attributeNames.version]: "{'N': $string(" + seatVersion("$text.S") + ")}",
    [attributeNames.fence]: attribute(fencePrefix),
    [attributeNames.owner]: `{'S': ${fieldOf("$seat", "owner")}}`,
    [attributeNames.expiresAt]: `{'N': $string(${fieldOf("$seat", "expiresAt")})}`,
    [attributeNames.revocation]: attribute(revocationPrefix),
    [seatAttribute]: "$text",
  }).map(([name, value]) => `${literal(name)}: ${value}`);
  return jsonata(
    `($item := ${item}; $of := ${token}; $text := ${attribute(textPrefix)}; ` +
      `$seat := $exists($text) ? ${seatFields("$text.S")}; ` +
      `$merge([{${marks.join(", ")}}, $exists($text) ? {${lease.join(", ")}} : {}]))`,
  );
}

/** Where such a record has the seat's text. */
const seatAttribute = "seat";

/** JSONata for the text of the lease in the variable `record`; empty for a lock's. */
export const recordedSeat: string = `$exists($record.${seatAttribute}) ? $record.${seatAttribute}.S : ''`;

/** Reads what an answer shows of the renewed lease of the variable `token`. */
export const renewedSeat: string = `$lookup($states.result.Attributes, ${literal(textPrefix)} & $token).S`;

/** JSONata for when a renewed lease ends. */
export const renewedSeatExpiry: string = fieldOf(seatFields(renewedSeat), "expiresAt");

/** The parts of the handle of the workflow's own permit, which an item or an answer shows, as JSONata. */
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

/** What a permit's handle has besides a lock's. */
export const permitHandle: { readonly [name: string]: Json } = {
  sortKey,
  seat: { ...sample.seat, permits: one, reentrant: false },
};

/**
 * Judges by an answer that shows every lease of the semaphore whether one more permit can be had, as the client does:
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
  const seat = Object.entries({
    token: "$seatToken",
    version: seatVersion("$value.S"),
    fence: `$number($lookup($item, ${literal(fencePrefix)} & $seatToken).N)`,
    permits: fieldOf("$seat", "permits"),
    expiresAt: fieldOf("$seat", "expiresAt"),
    owner: fieldOf("$seat", "owner"),
    reentrant: hasFlag(flags, "reentrant"),
    ownClock: hasFlag(flags, "ownClock"),
  }).map(([name, value]) => `${literal(name)}: ${value}`);
  const each = `($seat := ${seatFields("$value.S")}; {${seat.join(", ")}})`;
  const text = `$lookup($item, ${literal(textPrefix)} & ${token})`;
  const isAlive = `${fieldOf(seatFields(`${text}.S`), "expiresAt")} > $millis()`;
  const counter = `$item.${seatCounters.permit}.N`;
  const judged = Object.entries({
    own: `$exists(${text}) and ${isAlive} ? $own`,
    isOver: `$exists(${text}) or $item.${releasedToken}.S = ${token}`,
    isReadable: "$sum([$seats.permits]) = $taken",
    lacking: `$taken - ${permits - one}`,
    expired: "$sum([$expired.permits])",
    passed: "$expired[0]",
    next: `$seats[$not(token in $expired.token)][0].owner`,
  }).map(([name, value]) => `${literal(name)}: ${value}`);
  const byEnd = "function($one, $other) { $one.expiresAt > $other.expiresAt }";
  return jsonata(
    `($item := ${item}; ` +
      `$own := {${literal(textPrefix)} & ${token}: ${text}, ${literal(fencePrefix)} & ${token}: $lookup($item, ${literal(fencePrefix)} & ${token})}; ` +
      `$seats := $sort(${eachSeat("$item", each)}, ${byEnd}); ` +
      `$expired := $seats[$not(ownClock) and expiresAt + ${clockSkewMs} < $millis()]; ` +
      `$taken := $exists(${counter}) ? $number(${counter}) : 0; ` +
      `{${judged.join(", ")}})`,
  );
}
