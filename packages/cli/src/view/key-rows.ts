// What the items of a key mean for a person: whether its holders are alive, and the rows of a list of locks, one for
// each key and primitive. The command line and the console show the same rows.

import type { DescribedLease, DescribedSeats, KeyDetails, LeaseState } from "@leasehold/client/admin";
import type { Cell, Style } from "../terminal/table.ts";
import { ageText, counted, timeText } from "../terminal/text.ts";
import { endText } from "./history.ts";

/** How often a lease was renewed. A repeated acquisition counts as one more renewal. */
export function renewals({ version }: Pick<DescribedLease, "version">): number {
  return Math.max(0, version - 1);
}

/** How long ago a lease was renewed, or acquired if never renewed; at least 0, because clocks differ. */
export function renewedAgoMs(
  { expiresAt, leaseDurationMs }: Pick<DescribedLease, "expiresAt" | "leaseDurationMs">,
  readAt: number,
): number {
  return Math.max(0, readAt - (expiresAt - leaseDurationMs));
}

/** When a holder renews next if it keeps its rhythm; undefined if it does not seem to renew. */
export function nextRenewalInMs(lease: DescribedLease, readAt: number): number | undefined {
  const count = renewals(lease);
  const age = readAt - lease.acquiredAt;
  const sinceRenewal = renewedAgoMs(lease, readAt);
  if (count === 0) {
    // A heartbeat comes after a third of the lease. If none has come after half of it, none will come.
    const expected = lease.leaseDurationMs / 3;
    return sinceRenewal > lease.leaseDurationMs / 2 ? undefined : Math.max(0, expected - sinceRenewal);
  }
  const interval = (age - sinceRenewal) / count;
  // It is late by more than the duration of a renewal.
  if (sinceRenewal > 2 * interval + 1_000) return undefined;
  return Math.max(0, interval - sinceRenewal);
}

/** What is said of a lease in a state. */
interface Meaning {
  /** For people: `EXPIRED`. */
  readonly word: string;
  /** Its colour on a terminal. @default - none */
  readonly style?: Style;
  /** A sentence for the top of its page. */
  readonly headline: (lease: DescribedLease, readAt: number) => string;
  /** Further information; some of it matters less if others want the lock. */
  readonly note: (lease: DescribedLease, readAt: number, isWanted: boolean) => string;
}

/** The most important state comes first. */
const meanings: Readonly<Record<LeaseState, Meaning>> = {
  paused: {
    ...{ word: "PAUSED", style: "magenta" },
    headline: ({ pause, expiresAt }, readAt) =>
      `PAUSED by ${pause?.by ?? "?"} for ${ageText(expiresAt - readAt)} more`,
    note: ({ pause }) => JSON.stringify(pause?.reason ?? ""),
  },
  stopping: {
    ...{ word: "stopping", style: "yellow" },
    headline: ({ revocation }) => `held, and asked to stop: ${JSON.stringify(revocation ?? "")}`,
    note: ({ revocation }) => `asked to stop: ${JSON.stringify(revocation ?? "")}`,
  },
  held: {
    word: "held",
    headline: (lease, readAt) => {
      if (renewals(lease) > 0) return `held, and alive: renewed ${ageText(renewedAgoMs(lease, readAt))} ago`;
      const age = ageText(readAt - lease.acquiredAt);
      if (nextRenewalInMs(lease, readAt) !== undefined) return `held: acquired ${age} ago`;
      return `held; whether its holder is alive is not known: not renewed since it was acquired ${age} ago (lease ${ageText(lease.leaseDurationMs)})`;
    },
    note: (lease, readAt, isWanted) =>
      isWanted || renewals(lease) === 0 ? "" : `renewed ${ageText(renewedAgoMs(lease, readAt))} ago`,
  },
  grace: {
    ...{ word: "grace", style: "yellow" },
    headline: () => "over, but within the allowance for clocks: no caller takes it over yet",
    note: () => "over, within the allowance for clocks",
  },
  cooldown: {
    ...{ word: "closed", style: "dim" },
    headline: ({ expiresAt }, readAt) =>
      `closed for ${ageText(expiresAt - readAt)} more: its holder has released it early (lockAtLeastFor)`,
    note: () => "released early (lockAtLeastFor)",
  },
  expired: {
    ...{ word: "EXPIRED", style: "red" },
    headline: ({ expiresAt }, readAt) =>
      `EXPIRED ${ageText(readAt - expiresAt)} ago, and not released: the next caller takes it over`,
    note: (_lease, _readAt, isWanted) => (isWanted ? "" : "nobody has wanted it since"),
  },
  free: { word: "free", style: "dim", headline: () => "free", note: () => "" },
};

/** A lease's state in a word for people. */
export function stateWord(state: LeaseState): string {
  return meanings[state].word;
}

/** A text in the colour of a state; the text itself shows the state too. */
export function inColorOf(state: LeaseState, text: string): Cell {
  return { text, style: meanings[state].style };
}

/** A sentence on a lease for the top of its page: `held, and alive: renewed 3 s ago`. */
export function livenessText(lease: DescribedLease, readAt: number): string {
  return meanings[lease.state].headline(lease, readAt);
}

/** The effect of a request to stop: when the holder notices it, or why it never will. */
export function stopForecast(
  lease: DescribedLease,
  readAt: number,
): { readonly isHeard: boolean; readonly text: string } {
  const inMs = nextRenewalInMs(lease, readAt);
  if (inMs !== undefined) {
    return { isHeard: true, text: `It hears of it at its next renewal (in about ${ageText(inMs)}).` };
  }
  const age = ageText(readAt - lease.acquiredAt);
  const text =
    renewals(lease) === 0
      ? `It does not renew (no heartbeat since it was acquired ${age} ago, lease ${ageText(lease.leaseDurationMs)}): it will never hear of it.`
      : `It has renewed ${renewals(lease)} times, but not for ${ageText(renewedAgoMs(lease, readAt))}: it may never hear of it.`;
  return { isHeard: false, text: `${text} Its lease ends at ${timeText(lease.expiresAt).slice(11)} UTC.` };
}

/** The primitive of a key, by the sort keys of its items. */
export type Primitive = "lock" | "semaphore" | "rw-lock" | "job" | "tasks" | "cache" | "other";

/** The primitives that a pause closes. */
export const lockLike: readonly Primitive[] = ["lock", "semaphore", "rw-lock"];

/** A key, as one primitive uses it. */
export interface KeyRow {
  readonly key: string;
  readonly primitive: Primitive;
  /** When it was read: epoch milliseconds of the service's clock. */
  readonly readAt: number;
  /** `free`: nobody holds it. With several leases, the most important state counts: a holder comes first. */
  readonly state: LeaseState;
  /** The state in a word for people: `held`, `EXPIRED`, `2 of 5`, `writer`. */
  readonly stateText: string;
  /** The holder; for several holders, the primitive. */
  readonly owner: string;
  /** The lease whose times are shown: the lock's or the writer's; undefined for several holders or none. */
  readonly lease: DescribedLease | undefined;
  readonly leases: readonly DescribedLease[];
  /** Milliseconds since it was acquired. */
  readonly heldForMs: number | undefined;
  /** Milliseconds until it ends; negative when it has ended. */
  readonly remainingMs: number | undefined;
  /** How many callers wait in line (`fair()`), and how long the first of them has waited. */
  readonly waiting: number;
  readonly longestWaitMs: number | undefined;
  /** Workflows and durable functions that wait. */
  readonly parked: number;
  readonly permits: { readonly taken: number; readonly of: number | undefined } | undefined;
  /** Further information for a person. */
  readonly note: string;
}

/** The primitives of items, by the part of their sort keys before `#`. */
const primitives: ReadonlyMap<string, Primitive> = new Map([
  ["lease", "lock"],
  ["semaphore", "semaphore"],
  ["read-write", "rw-lock"],
  ["run", "job"],
  ["task", "tasks"],
  ["done", "tasks"],
  ["cache", "cache"],
]);

/** The primitive that an item at a sort key belongs to. */
export function primitiveOf(sortKey: string): Primitive {
  return primitives.get(sortKey.split("#", 1)[0] ?? "") ?? "other";
}

/** Every primitive with items under a key, in the order of display. A key with audit items alone has none. */
export function primitivesOf({ items, leases, parked }: KeyDetails): readonly Primitive[] {
  const kinds = Object.keys(items).filter((kind) => primitives.has(kind));
  const found = new Set([...leases.map(({ sortKey }) => sortKey), ...kinds].map(primitiveOf));
  if (parked.count > 0) found.add("lock");
  return [...new Set([...primitives.values(), "other" as const])].filter((one) => found.has(one));
}

/** The keys with items of a primitive. */
export function keysOf(primitive: Primitive, keys: readonly KeyDetails[]): readonly string[] {
  return keys.filter((key) => primitivesOf(key).includes(primitive)).map(({ key }) => key);
}

export function keyRows(details: KeyDetails): readonly KeyRow[] {
  return primitivesOf(details).map((primitive) => keyRow(details, primitive));
}

/** A row before its texts are added. */
type BareRow = Omit<KeyRow, "stateText" | "note">;

function keyRow(details: KeyDetails, primitive: Primitive): KeyRow {
  const { key, readAt } = details;
  const leases = details.leases.filter(({ sortKey }) => primitiveOf(sortKey) === primitive);
  const lease = soleLease(primitive, leases);
  const waiting = details.waiting.filter(
    ({ sortKey, expiresAt }) => primitiveOf(sortKey) === primitive && expiresAt > readAt,
  );
  const seats = details.seats.find(({ sortKey }) => primitiveOf(sortKey) === primitive);
  const [first] = waiting;
  const row: BareRow = {
    key,
    primitive,
    readAt,
    state: worst(leases),
    owner: lease === undefined ? (primitive === "lock" ? "" : primitive) : ownerOf(lease),
    lease,
    leases,
    heldForMs: lease && readAt - lease.acquiredAt,
    remainingMs: lease && lease.expiresAt - readAt,
    waiting: waiting.length,
    longestWaitMs: first && readAt - first.joinedAt,
    parked: primitive === "lock" ? details.parked.count : 0,
    permits:
      primitive === "semaphore" && seats !== undefined
        ? { taken: seats.taken.permit, of: seats.permits }
        : undefined,
  };
  return { ...row, stateText: stateTextOf(row, seats), note: noteOf(row, seats, details) };
}

/** The lease whose times a row shows: a lock and a writer have one, the other primitives any number. */
function soleLease(primitive: Primitive, leases: readonly DescribedLease[]): DescribedLease | undefined {
  if (primitive === "lock" || primitive === "other") return leases[0];
  if (primitive === "rw-lock") return leases.find(({ seat }) => seat?.kind === "write");
  return undefined;
}

/** The displayed holder of a lease; for a pause, the person. */
export function ownerOf({ owner, pause }: Pick<DescribedLease, "owner" | "pause">): string {
  return pause === undefined ? owner : `paused by ${pause.by}`;
}

function stateTextOf({ primitive, leases, state }: BareRow, seats: DescribedSeats | undefined): string {
  switch (primitive) {
    case "semaphore":
      if (state === "paused") return stateWord(state);
      return `${seats?.taken.permit ?? 0} of ${seats?.permits ?? "?"}`;
    case "rw-lock": {
      const { read = 0, write = 0, intent = 0 } = seats?.taken ?? {};
      if (state === "paused") return stateWord(state);
      if (read + write === 0 && intent > 0) return "wanted";
      return write > 0 ? "writer" : read > 0 ? counted(read, "reader") : "free";
    }
    case "job":
      return leases.length === 0 ? "idle" : stateWord(state);
    case "tasks":
      return `${leases.length} running`;
    default:
      return stateWord(state);
  }
}

function worst(leases: readonly DescribedLease[]): LeaseState {
  const all = Object.keys(meanings) as LeaseState[];
  return all.find((state) => leases.some((lease) => lease.state === state)) ?? "free";
}

function noteOf(row: BareRow, seats: DescribedSeats | undefined, details: KeyDetails): string {
  const { primitive, leases, lease, readAt } = row;
  const { items } = details;
  const queue = queueNote(row);
  const expired = leases.filter(({ state }) => state === "expired").length;
  switch (primitive) {
    case "semaphore":
      return notes(queue, expired > 0 && `${expired} EXPIRED`);
    case "rw-lock": {
      const { read = 0, write = 0, intent = 0 } = seats?.taken ?? {};
      const readers = write > 0 && counted(read, "reader");
      const writers = intent > 0 && `${intent} to write`;
      return notes(readers, writers, queue, expired > 0 && `${expired} EXPIRED`);
    }
    case "job":
      return notes(`runs kept: ${items.run ?? 0}`, expired > 0 && `${expired} lost`);
    case "tasks":
      return notes(
        `${(items.task ?? 0) - leases.length} waiting`,
        expired > 0 && `${expired} claims EXPIRED`,
        `${items.done ?? 0} ended`,
      );
    case "cache":
      return leases.length === 0 ? "kept" : "being computed";
    default:
      return lease === undefined
        ? notes(queue, freeNote(details))
        : notes(meanings[lease.state].note(lease, readAt, queue !== false), queue);
  }
}

function notes(...parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false && part !== "").join(", ");
}

function queueNote({ waiting, longestWaitMs = 0, parked }: BareRow): string | false {
  return (
    notes(
      waiting > 0 && `${waiting} waiting`,
      longestWaitMs >= 60_000 && `1st for ${ageText(longestWaitMs)}`,
      parked > 0 && counted(parked, "parked workflow"),
    ) || false
  );
}

function freeNote({ lastHolder, readAt }: KeyDetails): string {
  if (lastHolder === undefined) return "";
  return `${endText(lastHolder.end)} ${ageText(readAt - lastHolder.endedAt)} ago by ${lastHolder.owner}`;
}

/** Whether it is held: by a holder, an operator's pause, or a cooldown. */
export function isHeld({ state }: KeyRow): boolean {
  return state !== "free" && state !== "expired";
}

/** Whether new callers are refused. A semaphore refuses when no permit is left. */
export function isClosed(row: KeyRow): boolean {
  const { permits, state } = row;
  if (state === "paused") return true;
  return permits?.of === undefined ? isHeld(row) : permits.taken >= permits.of;
}
