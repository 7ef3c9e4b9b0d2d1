// A list of rows: which ones, in which order, as records for other programs, and as columns for a terminal.

import type { DescribedLease } from "@leasehold/client/admin";
import type { GlobalValues } from "../flags.ts";
import type { Column } from "../terminal/table.ts";
import { ageText, counted, timeText } from "../terminal/text.ts";
import { inColorOf, type KeyRow, keyRows, lockLike } from "./key-rows.ts";
import type { TableSnapshot } from "./table-snapshot.ts";

/** The order of rows: the longest held first, by name, or by the nearest end. */
type RowOrder = "age" | "key" | "ends";

export interface RowSelection {
  /** Every primitive; without it, job runs, tasks and caches are left out. @default false */
  readonly all?: boolean;
  /** Only leases that have expired and were not released. @default false */
  readonly expired?: boolean;
  /** Free locks too. @default false */
  readonly tombstones?: boolean;
  /** Only rows whose owner matches this pattern: `*` stands for any text, `?` for a character. @default - any */
  readonly owner?: string | undefined;
  /** Only leases that have been held for at least this many milliseconds. @default - any */
  readonly older?: number | undefined;
  /** @default "key" */
  readonly sort?: RowOrder | undefined;
}

/** The selected rows of a table, in their order. */
export function selectRows(snapshot: TableSnapshot, selection: RowSelection = {}): readonly KeyRow[] {
  const { all = false, expired = false, tombstones = false, owner, older, sort = "key" } = selection;
  const isOwner = owner === undefined ? () => true : globTest(owner);
  const rows = snapshot.keys
    .flatMap(keyRows)
    .filter(
      (row) =>
        (all || lockLike.includes(row.primitive)) &&
        (tombstones || !isIdle(row)) &&
        (!expired || row.leases.some(({ state }) => state === "expired")) &&
        (owner === undefined || row.leases.some((lease) => isOwner(lease.owner))) &&
        (older === undefined || row.leases.some(({ acquiredAt }) => row.readAt - acquiredAt >= older)),
    );
  return rows.sort(orders[sort]);
}

/** Nobody holds it, and nobody wants it. Tasks and caches with content still get a row. */
export function isIdle({ primitive, state, waiting, parked }: KeyRow): boolean {
  const keepsNothing = primitive !== "tasks" && primitive !== "cache" && primitive !== "job";
  return keepsNothing && state === "free" && waiting === 0 && parked === 0;
}

const byKey = (one: KeyRow, other: KeyRow): number =>
  one.key === other.key ? 0 : one.key < other.key ? -1 : 1;

/** By the earliest of a time of their leases; rows without a lease come last. */
function byEarliest(time: (lease: DescribedLease) => number): typeof byKey {
  const earliest = ({ leases }: KeyRow): number => Math.min(...leases.map(time));
  return (one, other) => {
    const [first, second] = [earliest(one), earliest(other)];
    return first === second ? byKey(one, other) : first - second;
  };
}

const orders: Readonly<Record<RowOrder, typeof byKey>> = {
  key: byKey,
  age: byEarliest(({ acquiredAt }) => acquiredAt),
  ends: byEarliest(({ expiresAt }) => expiresAt),
};

/**
 * Returns the test of a pattern in which `*` stands for any text and `?` for one character.
 *
 * Each part between two `*` takes the first place that it fits: that leaves the most for the others. So the time is at
 * most the product of the lengths of text and pattern, where a regular expression may never end.
 */
export function globTest(pattern: string): (text: string) => boolean {
  const [first = [], ...parts] = pattern.split("*").map((part) => [...part]);
  const last = parts.pop();
  return (text) => {
    const given = [...text];
    const fits = (part: readonly string[], at: number): boolean =>
      at + part.length <= given.length &&
      part.every((one, index) => one === "?" || one === given[at + index]);
    if (!fits(first, 0)) return false;
    if (last === undefined) return given.length === first.length;
    let at = first.length;
    for (const part of parts) {
      while (at < given.length && !fits(part, at)) at += 1;
      if (!fits(part, at)) return false;
      at += part.length;
    }
    return fits(last, Math.max(at, given.length - last.length));
  };
}

/** How many rows there are of each kind: `7 keys, 5 held, 1 expired, 1 paused`. */
export function countsText(rows: readonly KeyRow[]): string {
  const keys = new Set(rows.map(({ key }) => key)).size;
  const count = (...some: readonly string[]): number =>
    rows.filter(({ state }) => some.includes(state)).length;
  const states = [
    [count("held", "stopping", "grace"), "held"],
    [count("expired"), "expired"],
    [count("paused"), "paused"],
    [count("cooldown"), "closed"],
    [count("free"), "free"],
  ] as const;
  return [counted(keys, "key"), ...states.filter(([n]) => n > 0).map((one) => one.join(" "))].join(", ");
}

/** A lease for other programs: its record, with its state and its times until now. */
export function leaseRecord(lease: DescribedLease, readAt: number): object {
  return { ...lease, heldForMs: readAt - lease.acquiredAt, remainingMs: lease.expiresAt - readAt };
}

/** A row for other programs. Its field names are those of a lease's record, and a few more. */
export function rowRecord(row: KeyRow): object {
  const { key, primitive, readAt, state, lease, leases, waiting, longestWaitMs, parked, permits, note } = row;
  const others = leases.filter((one) => one !== lease);
  return {
    key,
    primitive,
    readAt,
    ...(lease === undefined ? {} : leaseRecord(lease, readAt)),
    state,
    waiting,
    longestWaitMs,
    parked,
    permits,
    leases: others.length === 0 ? undefined : others.map((one) => leaseRecord(one, readAt)),
    note,
  };
}

const none = "—";

/** `…710169`: enough to distinguish two numbers. */
export function fenceText(fencingToken: number | undefined): string {
  return fencingToken === undefined ? none : `…${String(fencingToken).slice(-6)}`;
}

/** `19s`, or `9h 12m ago` after the end. */
export function endIn(ms: number | undefined): string {
  if (ms === undefined) return none;
  return ms < 0 ? `${ageText(-ms)} ago` : ageText(ms);
}

/**
 * The columns of a list of locks. Times are relative; on request, and with everything in full (`wide`), also absolute.
 */
export function rowColumns({
  utc,
  local,
  output,
}: Pick<GlobalValues, "utc" | "local" | "output">): readonly Column<KeyRow>[] {
  const zone = local ? "local" : "utc";
  const isWide = output === "wide";
  const at = (time: number | undefined): string => (time === undefined ? none : timeText(time, zone));
  const absolute: readonly Column<KeyRow>[] = [
    { title: `SINCE (${zone})`, cell: ({ lease }) => at(lease?.acquiredAt), from: 60, less: 3 },
    { title: `ENDS (${zone})`, cell: ({ lease }) => at(lease?.expiresAt), from: 60, less: 4 },
  ];
  return [
    { title: "KEY", cell: ({ key }) => key, gives: true },
    { title: "STATE", cell: ({ state, stateText }) => inColorOf(state, stateText) },
    { title: "OWNER", cell: ({ owner }) => owner, gives: true, from: 50 },
    {
      title: "HELD FOR",
      cell: ({ heldForMs: ms }) => (ms === undefined ? none : ageText(ms)),
      align: "right",
      from: 60,
      less: 1,
    },
    { title: "ENDS IN", cell: ({ remainingMs }) => endIn(remainingMs), align: "right" },
    ...(utc || local || isWide ? absolute : []),
    {
      title: "FENCE",
      cell: ({ lease }) => (isWide ? String(lease?.fencingToken ?? none) : fenceText(lease?.fencingToken)),
      align: "right",
      from: 72,
      less: 5,
    },
    { title: "NOTE", cell: ({ note }) => note, gives: true, from: 72, less: 2 },
  ];
}
