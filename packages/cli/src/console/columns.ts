// The kinds of columns: each shows one value of a row, and sorts by it.

import type { LeaseRecord } from "@leasehold/client/record";
import { ageText } from "../terminal/text.ts";
import {
  badge,
  type HtmlValue,
  html,
  leaseBar,
  named,
  payloadOf,
  remarked,
  time as timeMark,
} from "./html.ts";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => HtmlValue;
  /** What its rows are sorted by. @default - it does not sort */
  readonly by?: (row: Row) => string | number | undefined;
  /** How much room it needs, and how it stands on a narrow screen: the style knows each. @default "text" */
  readonly kind?: "key" | "state" | "number" | "bar" | "time" | "text" | "long" | "lane" | "marks";
}

type Value<Row, T> = (row: Row) => T | undefined;

/** What a row is about, with a link to its page if there is one. */
export function key<Row>(
  title: string,
  of: (row: Row) => string | undefined,
  address?: (key: string) => string,
): Column<Row> {
  const cell = (row: Row): HtmlValue => {
    const text = of(row) ?? "";
    return address === undefined
      ? named(text)
      : html`<a href="${address(text)}" title="${text}">${named(text)}</a>`;
  };
  return { title, kind: "key", cell, by: of };
}

export function name<Row>(title: string, of: Value<Row, string>): Column<Row> {
  return { title, cell: (row) => named(of(row), 40), by: (row) => of(row) || undefined };
}

/** A state in its colour, in these words. */
export function state<Row>(
  title: string,
  of: (row: Row) => string,
  word: (row: Row) => string = of,
): Column<Row> {
  return { title, kind: "state", cell: (row) => badge(of(row), word(row)), by: word };
}

/** Shows a value if there is one, and sorts by it. */
function shownBy<T extends string | number>(kind: Column<never>["kind"], show: (value: T) => HtmlValue) {
  return <Row>(title: string, of: Value<Row, T>): Column<Row> => {
    const cell = (row: Row): HtmlValue => {
      const value = of(row);
      return value === undefined ? undefined : show(value);
    };
    return { title, ...(kind && { kind }), cell, by: of };
  };
}

export const time = shownBy<number>("time", timeMark);
/** Milliseconds as a duration. */
export const age = shownBy("number", ageText);
export const number = shownBy("number", (value: number) => value.toLocaleString("en-US"));

/** What is left of a lease. */
export function lease<Row>(of: Value<Row, LeaseRecord>, readAt: (row: Row) => number): Column<Row> {
  const cell = (row: Row): HtmlValue => {
    const lease = of(row);
    return lease && leaseBar(lease, readAt(row));
  };
  return { title: "Ends", kind: "bar", cell, by: (row) => of(row)?.expiresAt };
}

/** A remark, a note or a reason. */
export function text<Row>(title: string, of: Value<Row, string>): Column<Row> {
  return { title, kind: "long", cell: (row) => remarked(of(row)) };
}

export function data<Row>(title: string, of: (row: Row) => unknown): Column<Row> {
  return { title, kind: "long", cell: (row) => payloadOf(of(row)) };
}
