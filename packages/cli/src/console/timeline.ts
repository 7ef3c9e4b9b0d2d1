// The times of a key's holders and waiting callers, a bar for each, on one scale.

import * as column from "./columns.ts";
import { type Html, html, time } from "./html.ts";
import { list } from "./list.ts";
import type { PageRequest } from "./server.ts";

/** One holder's or waiting caller's time. */
export interface Span {
  readonly owner: string;
  readonly from: number;
  /** Its end; the present time if it goes on. */
  readonly to: number;
  /** Whether it held the lock, holds it, or waits for it. */
  readonly kind: "past" | "holds" | "paused" | "waits";
  /** How it ended, or how it is. */
  readonly state: string;
}

/** The times that two holders of the same lock share: two callers held it, or their clocks differ. */
function overlaps(spans: readonly Span[]): readonly { readonly from: number; readonly to: number }[] {
  const sorted = spans.filter(({ kind }) => kind !== "waits").sort((one, other) => one.from - other.from);
  return sorted.flatMap((span, index) => {
    const next = sorted[index + 1];
    return next !== undefined && next.from < span.to
      ? [{ from: next.from, to: Math.min(span.to, next.to) }]
      : [];
  });
}

/** A table whose rows have a bar each. The bars say nothing that the other columns do not say in words. */
export function timeline(spans: readonly Span[], now: number, request: PageRequest): Html {
  if (spans.length === 0)
    return html`<p class="empty">Nothing is known of holders, and nobody waits in line.</p>`;
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to), now, from + 1);
  const x = (at: number): number => ((at - from) / (to - from)) * 100;
  const bar = (kind: string, start: number, end: number): Html =>
    html`<rect class="${kind}" x="${x(start).toFixed(3)}%" width="${Math.max(0.4, x(end) - x(start)).toFixed(3)}%" y="4" height="10" rx="2"/>`;
  const common = overlaps(spans);
  const shared = (span: Span): readonly Html[] =>
    span.kind === "waits"
      ? []
      : common
          .filter((one) => one.from < span.to && one.to > span.from)
          .map((one) => bar("overlap", Math.max(one.from, span.from), Math.min(one.to, span.to)));
  const lane = (span: Span): Html =>
    html`<svg class="bars" aria-hidden="true"><line x1="0" x2="100%" y1="9" y2="9"/>${bar(span.kind, span.from, span.to)}${shared(span)}<line class="now" x1="${x(now).toFixed(3)}%" x2="${x(now).toFixed(3)}%" y1="0" y2="18"/></svg>`;
  return html`<p class="dim">From ${time(from)} to ${time(to)}. The dotted line is now.</p>${list<Span>({
    caption: "The times of holders and waiting callers, the earliest first",
    columns: [
      column.key("Who", ({ owner }) => owner),
      { title: "Time", kind: "lane", cell: lane },
      column.time("Since", (span) => span.from),
      column.age("For", (span) => Math.max(0, span.to - span.from)),
      column.state(
        "How",
        ({ kind, state }) => (kind === "waits" ? "grace" : state.toLowerCase()),
        ({ state }) => state,
      ),
    ],
    rows: spans,
    empty: "",
    id: ({ owner, from, kind }) => `${kind} ${from} ${owner}`,
    request,
    name: "times-",
  })}
${common.length > 0 && html`<p class="problem">${common.length} times two holders overlap, by their own clocks: the red parts.</p>`}`;
}
