import type { Served, Standing } from "../../../../functions/admit-tickets/department.ts";

/** What a ticket does of its own accord. */
export type Fate =
  /** It waits for its turn, and is served. */
  | "served"
  /** It enters, and is not heard of again. */
  | "diesWaiting"
  /** It is not heard of again once it is in service. */
  | "diesServing"
  /** It goes away before its turn. */
  | "leaves"
  /** It comes when the queue is full. */
  | "refused";

/** A ticket as the plan has it, in the order of arrival. */
export interface Arrival {
  readonly department: string;
  readonly ticket: string;
  readonly fate: Fate;
}

/** One thing that was asked for a ticket, and the answer. Times are milliseconds of this process, which never jump. */
export interface Inquiry {
  readonly department: string;
  readonly ticket: string;
  readonly action: "enter" | "heartbeat" | "leave" | "next";
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly answer: Standing | Served;
}

/** All that the audit looks at. */
export interface TicketsEvidence {
  readonly arrivals: readonly Arrival[];
  /** In the order of the answers. */
  readonly inquiries: readonly Inquiry[];
  /** How many may wait. */
  readonly mostWaiting: number;
  /** After this much silence a ticket counts as gone. */
  readonly silenceMs: number;
  /** A ticket that entered a second time, and what it was told then. */
  readonly enteredAgain: { readonly ticket: string; readonly answer: Standing };
  /** The ticket that was left behind for the cleaner, how many that took off, and what was said of it then. */
  readonly leftBehind: { readonly ticket: string; readonly removed: number; readonly answer: Standing };
}

/** Where a ticket stands, in a few words. */
export function describeStanding(standing: Standing): string {
  if (standing.state === "refused") return `refused, since ${standing.waiting} wait`;
  const place = standing.state === "waiting" ? ` as number ${standing.position}` : "";
  return `${standing.ticket} is ${standing.state}${place}`;
}
