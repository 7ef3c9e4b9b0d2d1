// Everything about a key: as a command, and as lines for a terminal.

import type { DescribedLease, DescribedTicket, KeyDetails } from "@leasehold/client/admin";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { text } from "../flags.ts";
import { type Column, type Paint, tableLines } from "../terminal/table.ts";
import {
  ageText,
  counted,
  cut,
  durationText,
  fieldLines,
  paragraph,
  shown,
  timeText,
  widthOf,
} from "../terminal/text.ts";
import { describedKey } from "../view/described-key.ts";
import { type PastHolder, pastHolders } from "../view/history.ts";
import {
  inColorOf,
  isHeld,
  type KeyRow,
  keyRows,
  livenessText,
  ownerOf,
  primitiveOf,
  renewals,
  renewedAgoMs,
  stateWord,
} from "../view/key-rows.ts";
import { type NextStep, nextSteps, tokenPrefix } from "../view/next-steps.ts";
import { endIn, leaseRecord, rowRecord } from "../view/rows.ts";
import { clockNotice } from "../view/table-snapshot.ts";

const shownHolders = 5;

export const get = command({
  usage: "get KEY",
  details: `
Shows everything about a key: who holds it and whether that holder is alive, who waits, who had it before, what operators
have done, and command lines for what you can do. 1 consistent query for each megabyte under the key, and 1 for its history.

Exits with 0 where the key is held or closed, with 1 where it is free, and with 78 where its lease cannot be read.`,
  writes: false,
  flags: { place: text("SORTKEY", "only the lease at this sort key, where the key has several") },
  async run({ flags: { place }, global, connect, printer, terminal }, key) {
    const { client, operator } = await connect();
    const { details: read, unreadable } = await describedKey(operator, key);
    const details =
      place === undefined
        ? read
        : { ...read, leases: read.leases.filter(({ sortKey }) => sortKey === place) };
    const rows = keyRows(details);
    const holders = await pastHolders(operator, details, shownHolders);
    const record = {
      ...details,
      rows: rows.map(rowRecord),
      leases: details.leases.map((lease) => leaseRecord(lease, details.readAt)),
      holders,
      nextSteps: nextSteps(details),
    };
    printer.document("key", record, () =>
      keyReport(details, holders, {
        columns: terminal.columns,
        paint: terminal.paint,
        zone: global.local ? "local" : "utc",
        isWide: printer.format === "wide",
      }),
    );
    if (printer.isForPeople) terminal.sayIf(clockNotice(client));
    for (const line of unreadable) terminal.complain(`leasehold: ${line}`);
    if (rows.some(isHeld)) return exitCodes.done;
    return unreadable.length > 0 ? exitCodes.configuration : exitCodes.nothing;
  },
});

interface ReportOptions {
  /** The width of a line; Infinity without a terminal. */
  readonly columns: number;
  readonly paint: Paint;
  readonly zone: "utc" | "local";
  readonly isWide: boolean;
}

const indent = "  ";
/** A semaphore may have 1000 holders. */
const shownLeases = 20;
/** A payload may have 392 KiB. */
const shownPayload = 400;

const namesOfPrimitives: Readonly<Record<KeyRow["primitive"], string>> = {
  lock: "lock",
  semaphore: "semaphore",
  "rw-lock": "read-write lock",
  job: "job",
  tasks: "task set",
  cache: "cache",
  other: "lease",
};

/** The lines about a key: its primitives, the waiting callers, the past holders, and the possible actions. */
function keyReport(
  details: KeyDetails,
  holders: readonly PastHolder[],
  options: ReportOptions,
): readonly string[] {
  const rows = keyRows(details);
  const sections = [
    ...(rows.length === 0 ? [titleLines(details.key, "nothing is known of this key", options)] : []),
    ...rows.map((row) => rowSection(row, details, options)),
    waitingSection(details, options),
    holdersSection(holders, options),
    auditSection(details, options),
    stepsSection(nextSteps(details), options),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ["", ...lines]));
}

/** The key, and beside it, or below it if there is no room, its most important state. */
function titleLines(key: string, headline: string, { columns, paint }: ReportOptions): readonly string[] {
  const name = shown(key);
  const beside = `${name}  ${shown(headline)}`;
  if (widthOf(beside) <= columns) return [`${paint("bold", name)}  ${shown(headline)}`];
  return [
    ...paragraph(key, columns).map((line) => paint("bold", line)),
    ...paragraph(headline, columns, indent),
  ];
}

function rowSection(row: KeyRow, details: KeyDetails, options: ReportOptions): readonly string[] {
  const { lease, leases, primitive } = row;
  const name = namesOfPrimitives[primitive];
  if (primitive === "lock" && lease === undefined) {
    const done = details.doneSlot === undefined ? "" : `; the slot ${details.doneSlot} is done`;
    return titleLines(row.key, `free${done}`, options);
  }
  if (lease !== undefined && leases.length === 1) {
    const kind = primitive === "lock" ? "" : `${name}: `;
    return [
      ...titleLines(row.key, kind + livenessText(lease, row.readAt), options),
      ...fieldLines(leaseFields(lease, details, options), options.columns),
    ];
  }
  return [...titleLines(row.key, headlineOf(row, name), options), ...leasesTable(row, options)];
}

function headlineOf({ stateText, note, primitive }: KeyRow, name: string): string {
  const taken = primitive === "semaphore" ? " permits are taken" : "";
  return `${name}: ${stateText}${taken}${note === "" ? "" : `; ${note}`}`;
}

function leaseFields(
  lease: DescribedLease,
  { readAt, doneSlot }: KeyDetails,
  { zone, isWide }: ReportOptions,
): readonly (readonly [string, string | undefined])[] {
  const { state, owner, acquiredAt, expiresAt, leaseDurationMs, fencingToken, token, pause, sortKey } = lease;
  const at = (time: number): string => `${timeText(time, zone)}${zone === "utc" ? " UTC" : ""}`;
  const count = renewals(lease);
  const ago = ageText(renewedAgoMs(lease, readAt));
  const renewed = count === 0 ? "not renewed" : `renewed ${counted(count, "time")}, last ${ago} ago`;
  const until =
    expiresAt <= readAt
      ? `${ageText(readAt - expiresAt)} ago`
      : `in ${ageText(expiresAt - readAt)}${state === "held" || state === "stopping" ? ", unless it is renewed" : ""}`;
  const ofHolder = (value: string): string | undefined => (pause === undefined ? value : undefined);
  return [
    ["holder", ofHolder(`${owner}${state === "cooldown" ? " (has released it)" : ""}`)],
    ["paused by", pause?.by],
    ["reason", pause?.reason],
    ["since", `${at(acquiredAt)}, ${ageText(readAt - acquiredAt)} ago`],
    ["ends", `${at(expiresAt)}, ${until}`],
    ["lease", ofHolder(`${durationText(leaseDurationMs)}, ${renewed}`)],
    ["fencing", String(fencingToken)],
    ["token", token],
    ["place", sortKey === "lease" ? undefined : sortKey],
    ["data", ofHolder(payloadText(lease, isWide))],
    ["reentrant", lease.reentrant ? "yes: the same owner can acquire it again" : undefined],
    ["asked to stop?", ofHolder(lease.revocation === undefined ? "no" : `yes: ${lease.revocation}`)],
    ["done slot", doneSlot],
  ];
}

function payloadText({ data, invalidData }: DescribedLease, isWide: boolean): string {
  const text = invalidData === undefined ? (JSON.stringify(data) ?? "none") : `no JSON: ${invalidData}`;
  return isWide ? text : cut(text, shownPayload);
}

/** Several leases of one primitive: permits, readers, runs, claims of tasks. */
function leasesTable({ leases, readAt, primitive }: KeyRow, options: ReportOptions): readonly string[] {
  if (leases.length === 0) return [];
  const tokens = leases.map(({ token }) => token);
  const isSeat = primitive === "semaphore" || primitive === "rw-lock";
  const columns: readonly Column<DescribedLease>[] = [
    isSeat
      ? {
          title: "seat",
          cell: ({ seat }) => (seat?.kind === "permit" ? `${seat.permits} ×` : (seat?.kind ?? "")),
        }
      : { title: "place", cell: ({ sortKey }) => sortKey, gives: true },
    { title: "holder", cell: (lease) => ownerOf(lease), gives: true },
    { title: "state", cell: ({ state }) => inColorOf(state, stateWord(state)) },
    { title: "held for", cell: ({ acquiredAt }) => ageText(readAt - acquiredAt), align: "right", from: 60 },
    { title: "ends in", cell: ({ expiresAt }) => endIn(expiresAt - readAt), align: "right" },
    {
      title: "renewed",
      cell: (lease) => (renewals(lease) === 0 ? "no" : `${ageText(renewedAgoMs(lease, readAt))} ago`),
      align: "right",
      from: 70,
    },
    { title: "token", cell: ({ token }) => tokenPrefix(token, tokens), from: 50 },
  ];
  const more = leases.length - shownLeases;
  if (options.isWide || more <= 0) return indented(leases, columns, options);
  const note = paragraph(`and ${more} more: -o wide shows all`, options.columns, indent);
  return [...indented(leases.slice(0, shownLeases), columns, options), ...note];
}

function waitingSection(details: KeyDetails, options: ReportOptions): readonly string[] {
  const { readAt, waiting, parked } = details;
  const parkedText =
    parked.count === 0
      ? "none"
      : `${parked.count}, the first for ${ageText(readAt - (parked.since ?? readAt))}`;
  const isLock = details.leases.some(({ sortKey }) => primitiveOf(sortKey) === "lock");
  if (waiting.length === 0 && parked.count === 0 && !isLock) return [];
  const isEstimated = waiting.some(({ estimatedWaitMs }) => estimatedWaitMs !== undefined);
  const turn: Column<DescribedTicket> = {
    title: "turn in about",
    cell: ({ estimatedWaitMs: ms }) => (ms === undefined ? "?" : ageText(ms)),
    align: "right",
    from: 70,
  };
  const columns: readonly Column<DescribedTicket>[] = [
    { title: "", cell: ({ position }) => String(position), align: "right" },
    { title: "waiting (fair, by arrival)", cell: ({ owner }) => owner, gives: true },
    { title: "since", cell: ({ joinedAt }) => ageText(readAt - joinedAt), align: "right" },
    { title: "ticket ends in", cell: ({ expiresAt }) => endIn(expiresAt - readAt), align: "right", from: 60 },
    ...(isEstimated ? [turn] : []),
  ];
  const unseen = "Callers that wait without `fair` leave nothing in the table: they are not shown.";
  return [
    ...(waiting.length === 0 ? [] : indented(waiting, columns, options)),
    ...(waiting.length === 0 ? paragraph("waiting (fair): nobody", options.columns, indent) : []),
    ...paragraph(unseen, options.columns, indent).map((line) => options.paint("dim", line)),
    ...paragraph(`parked workflows: ${parkedText}`, options.columns, indent),
  ];
}

function holdersSection(holders: readonly PastHolder[], options: ReportOptions): readonly string[] {
  if (holders.length === 0) return [];
  const columns: readonly Column<PastHolder>[] = [
    {
      title: holders.length === 1 ? "last holder" : `last ${holders.length} holders`,
      cell: ({ owner }) => owner,
      gives: true,
    },
    { title: "held for", cell: ({ heldForMs }) => ageText(heldForMs), align: "right" },
    { title: "ended", cell: ({ ended }) => ended },
    { title: `at (${options.zone})`, cell: ({ endedAt }) => timeText(endedAt, options.zone), from: 70 },
  ];
  return indented(holders, columns, options);
}

const shownAudit = 5;

function auditSection({ audit, readAt }: KeyDetails, options: ReportOptions): readonly string[] {
  if (audit.length === 0) return [];
  const columns: readonly Column<KeyDetails["audit"][number]>[] = [
    { title: "operators did", cell: ({ action }) => action },
    { title: "by", cell: ({ by }) => by, gives: true },
    { title: "ago", cell: ({ at }) => ageText(readAt - at), align: "right" },
    { title: "why", cell: ({ reason = "" }) => reason, gives: true, from: 50 },
  ];
  return indented(audit.slice(-shownAudit).toReversed(), columns, options);
}

function stepsSection(steps: readonly NextStep[], options: ReportOptions): readonly string[] {
  if (steps.length === 0) return [];
  const { paint } = options;
  const width = Math.max(...steps.map(({ what }) => what.length));
  const widest = Math.max(...steps.map(({ command }) => indent.length + width + 2 + widthOf(command)));
  // A command line is not broken, so that it can be copied.
  const isBeside = widest <= options.columns;
  return [
    paint("bold", "What you can do"),
    ...steps.flatMap(({ what, command, caution }) => {
      const minded = caution === undefined ? [] : [`(${caution})`];
      return isBeside
        ? [
            `${indent}${what.padEnd(width)}  ${command}`,
            ...minded.map((text) => paint("dim", `${indent}${" ".repeat(width)}  ${text}`)),
          ]
        : [
            `${indent}${what}`,
            ...minded.flatMap((text) => paragraph(text, options.columns, indent)),
            command,
          ];
    }),
  ];
}

function indented<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { columns: width, paint }: ReportOptions,
): readonly string[] {
  const visible = columns.filter(({ from = 0 }) => from <= width);
  return tableLines(rows, visible, { width: width - indent.length, paint }).map(
    (line) => indent + line.trimEnd(),
  );
}
