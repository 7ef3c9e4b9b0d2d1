// The lines of the full screen, as a function of the last look and the user's choices.

import { inColorOf } from "../commands/shared/row-columns.ts";
import { ageText, timeText } from "../terminal/durations.ts";
import { type Column, type Paint, type Style, tableLines } from "../terminal/table.ts";
import { cut, fold, shown } from "../terminal/text.ts";
import type { KeyRow } from "../view/key-rows.ts";
import { renewals, renewedAgoMs } from "../view/liveness.ts";
import type { TableRates } from "../view/rate-meter.ts";
import { dollarsText, unitsText } from "../view/read-cost.ts";
import type { RowOrder } from "../view/row-selection.ts";
import type { TableSnapshot } from "../view/table-snapshot.ts";

/** The parts of a frame. */
export interface TopFrame {
  readonly place: string;
  readonly isReadOnly: boolean;
  readonly everyMs: number;
  /** Undefined until the first look. */
  readonly snapshot: TableSnapshot | undefined;
  readonly rows: readonly KeyRow[];
  readonly rates: TableRates;
  readonly sort: RowOrder;
  /** The text that keys have to contain. */
  readonly filter: string;
  /** Whether the filter is being typed. */
  readonly isFiltering: boolean;
  /** The key and the primitive of the chosen row. */
  readonly selected: string | undefined;
  /** Rows that have changed since the look before. */
  readonly changed: ReadonlySet<string>;
  /** The reason why the table cannot be read, if any. */
  readonly trouble: string | undefined;
}

/** One name for each row. */
export function rowName({ key, primitive }: KeyRow): string {
  return `${primitive} ${key}`;
}

const dayMs = 86_400_000;

/** The lines of the list. No line is wider than the screen; the chosen row is among them. */
export function topLines(
  frame: TopFrame,
  {
    columns,
    rows: height,
    paint,
  }: { readonly columns: number; readonly rows: number; readonly paint: Paint },
): readonly string[] {
  const head = [
    ...headLines(frame, columns).map((line) => paint("bold", line)),
    ...countLines(frame, columns),
  ];
  const foot = footLine(frame, columns);
  const room = Math.max(1, height - head.length - 3);
  const { rows, selected } = frame;
  const chosen = Math.max(
    0,
    rows.findIndex((row) => rowName(row) === selected),
  );
  const from = Math.max(0, Math.min(chosen - Math.floor(room / 2), rows.length - room));
  const visible = rows.slice(from, from + room);
  const [titles = "", ...lines] = tableLines(visible, columnsOf(frame, columns), {
    width: columns - 2,
    paint,
  });
  const table = lines.map((line, index) => {
    const row = visible[index];
    const isChosen = row !== undefined && rowName(row) === selected;
    const hasChanged = row !== undefined && frame.changed.has(rowName(row));
    return `${isChosen ? paint("cyan", "▸") : hasChanged ? paint("yellow", "•") : " "} ${line}`;
  });
  const none = frame.snapshot === undefined ? "  looking …" : "  nothing is held";
  const body = visible.length === 0 ? [cut(none, columns)] : [`  ${titles}`, ...table];
  const blank = Array.from({ length: Math.max(0, height - head.length - 1 - body.length - 1) }, () => "");
  return [...head, "", ...body, ...blank, paint("dim", foot)].slice(0, height);
}

function headLines(frame: TopFrame, columns: number): readonly string[] {
  const { snapshot, place, everyMs, isReadOnly, trouble } = frame;
  const time = snapshot === undefined ? [] : [`${timeText(snapshot.readAt).slice(11)} UTC`];
  const perSecond = snapshot === undefined ? 0 : snapshot.cost.units / (everyMs / 1_000);
  const price =
    snapshot === undefined
      ? []
      : [`${unitsText(perSecond)} RCU/s (${dollarsText((snapshot.cost.dollars * dayMs) / everyMs)} a day)`];
  const parts = ["leasehold top", shown(place), ...time, `every ${ageText(everyMs)}`, ...price];
  const end = isReadOnly ? ["read-only"] : [];
  return fold([...parts, ...end].join(" · "), columns).concat(
    trouble === undefined ? [] : fold(`! ${trouble}`, columns),
  );
}

function countLines({ rows, rates, snapshot }: TopFrame, columns: number): readonly string[] {
  if (snapshot === undefined) return [];
  const count = (...states: readonly string[]): number =>
    rows.filter(({ state }) => states.includes(state)).length;
  const waiting = rows.reduce((sum, row) => sum + row.waiting, 0);
  const counts = [
    `held ${count("held", "stopping", "grace")}`,
    `expired ${count("expired")}`,
    `paused ${count("paused")}`,
    `waiting (fair) ${waiting}`,
    `acquired/min ${rates.acquired}`,
    `taken over/min ${rates.takenOver}`,
    `lost/min ${rates.lost}`,
  ];
  return fold(counts.join("   "), columns);
}

function footLine({ isFiltering, filter, sort, isReadOnly }: TopFrame, columns: number): string {
  if (isFiltering) return cut(`/${shown(filter)}▏  enter: done, esc: all`, columns);
  const writes = isReadOnly ? "" : "  x stop  X break";
  const filtered = filter === "" ? "" : `  [/${shown(filter)}]`;
  return cut(`q quit  s sort: ${sort}  / filter  ⏎ get${writes}${filtered}`, columns);
}

const barWidth = 14;

function columnsOf({ changed }: TopFrame, columns: number): readonly Column<KeyRow>[] {
  const all: readonly Column<KeyRow>[] = [
    {
      title: "KEY",
      // A row that has changed blinks once.
      cell: (row) => (changed.has(rowName(row)) ? { text: row.key, style: "bold" } : row.key),
      gives: true,
    },
    { title: "STATE", cell: ({ state, stateText }) => inColorOf(state, stateText) },
    { title: "HOLDER", cell: ({ owner }) => owner, gives: true, from: 60 },
    {
      title: "HELD",
      cell: ({ heldForMs: ms }) => (ms === undefined ? "—" : ageText(ms)),
      align: "right",
      from: 72,
      less: 1,
    },
    {
      title: "ENDS",
      cell: ({ remainingMs: ms }) => (ms === undefined ? "—" : ms < 0 ? "!!" : ageText(ms)),
      align: "right",
    },
    { title: "lease left", cell: leftBar, from: 80, less: 3 },
    { title: "WAIT", cell: ({ waiting }) => String(waiting), align: "right", from: 50, less: 2 },
    { title: "RENEWED", cell: renewedText, align: "right", from: 90, less: 4 },
  ];
  return all.filter(({ from = 0 }) => from <= columns);
}

/** The rest of the lease's time; the text beside it says the same. */
function leftBar({ lease, remainingMs = 0, state }: KeyRow): {
  readonly text: string;
  readonly style: Style;
} {
  if (lease === undefined) return { text: "", style: "dim" };
  if (remainingMs <= 0)
    return { text: `over ${ageText(-remainingMs)}`, style: state === "expired" ? "red" : "yellow" };
  const share = Math.min(1, remainingMs / lease.leaseDurationMs);
  const full = Math.max(1, Math.round(share * barWidth));
  return { text: "█".repeat(full) + "░".repeat(barWidth - full), style: share < 0.2 ? "yellow" : "green" };
}

function renewedText({ lease, readAt }: KeyRow): string {
  return lease === undefined || renewals(lease) === 0 ? "—" : ageText(renewedAgoMs(lease, readAt));
}

/** Lines of a text that is longer than the screen, from a given line on. */
export function scrolled(
  lines: readonly string[],
  from: number,
  { columns, rows, paint }: { readonly columns: number; readonly rows: number; readonly paint: Paint },
): readonly string[] {
  const room = Math.max(1, rows - 1);
  const visible = lines.slice(from, from + room);
  const blank = Array.from({ length: room - visible.length }, () => "");
  const more = lines.length > from + room ? `  ↓ ${lines.length - from - room} more` : "";
  return [...visible, ...blank, paint("dim", cut(`q back${more}`, columns))];
}
