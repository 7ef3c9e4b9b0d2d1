// How rows of locks look in a table on a terminal.

import type { LeaseState } from "@leasehold/client";
import type { GlobalValues } from "../../flags.ts";
import { ageText, timeText } from "../../terminal/durations.ts";
import type { Cell, Column, Style } from "../../terminal/table.ts";
import type { KeyRow } from "../../view/key-rows.ts";

const none = "—";

const stylesOfStates: Readonly<Partial<Record<LeaseState, Style>>> = {
  expired: "red",
  grace: "yellow",
  stopping: "yellow",
  paused: "magenta",
  cooldown: "dim",
  free: "dim",
};

/** A text in the colour of a state; the text itself shows the state too. */
export function inColorOf(state: LeaseState, text: string): Cell {
  const style = stylesOfStates[state];
  return style === undefined ? text : { text, style };
}

/** `…710169`: enough to distinguish two numbers. */
export function fenceText(fencingToken: number | undefined): string {
  return fencingToken === undefined ? none : `…${String(fencingToken).slice(-6)}`;
}

/** `19s`, or `9h 12m ago` after the end. */
export function endIn(ms: number | undefined): string {
  if (ms === undefined) return none;
  return ms < 0 ? `${ageText(-ms)} ago` : ageText(ms);
}

/** The columns of a list of locks. Times are relative, and on request also absolute. */
export function rowColumns({ utc, local }: Pick<GlobalValues, "utc" | "local">): readonly Column<KeyRow>[] {
  const zone = local ? "local" : "utc";
  const isAbsolute = utc || local;
  const at = ({ readAt }: KeyRow, inMs: number | undefined): string =>
    inMs === undefined ? none : timeText(readAt + inMs, zone);
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
    {
      title: `SINCE (${zone})`,
      cell: (row) => at(row, row.heldForMs && -row.heldForMs),
      wide: !isAbsolute,
      from: 60,
      less: 3,
    },
    {
      title: `ENDS (${zone})`,
      cell: (row) => at(row, row.remainingMs),
      wide: !isAbsolute,
      from: 60,
      less: 4,
    },
    {
      title: "FENCE",
      cell: ({ lease }) => fenceText(lease?.fencingToken),
      full: ({ lease }) => String(lease?.fencingToken ?? none),
      align: "right",
      from: 72,
      less: 5,
    },
    { title: "NOTE", cell: ({ note }) => note, gives: true, from: 72, less: 2 },
  ];
}
