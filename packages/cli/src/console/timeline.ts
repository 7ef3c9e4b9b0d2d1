import { durationText, timeText } from "../terminal/durations.ts";
import { type Html, html } from "./html.ts";

/** One holder's time. */
export interface Span {
  readonly owner: string;
  readonly from: number;
  /** Its end; the present time if it goes on. */
  readonly to: number;
  /** How it ended. */
  readonly end: string;
}

const width = 900;
const nameWidth = 240;
const laneHeight = 22;
const mostLanes = 20;

/** The times that two spans of the same lock share: two callers held it, or their clocks differ. */
export function overlaps(spans: readonly Span[]): readonly { readonly from: number; readonly to: number }[] {
  const sorted = [...spans].sort((one, other) => one.from - other.from);
  return sorted.flatMap((span, index) => {
    const next = sorted[index + 1];
    return next !== undefined && next.from < span.to
      ? [{ from: next.from, to: Math.min(span.to, next.to) }]
      : [];
  });
}

/**
 * Draws the last holders, one lane for each, with overlaps in another colour. A table has the same data for screen
 * readers.
 */
export function timeline(spans: readonly Span[]): Html {
  const shown = spans.slice(-mostLanes);
  if (shown.length === 0) return html`<p class="dim">Nothing is known of earlier holders.</p>`;
  const from = Math.min(...shown.map((span) => span.from));
  const to = Math.max(...shown.map((span) => span.to), from + 1);
  const x = (at: number): string =>
    (nameWidth + ((at - from) / (to - from)) * (width - nameWidth - 10)).toFixed(1);
  const bar = (className: string, start: number, end: number, lane: number): Html => {
    const length = Math.max(2, Number(x(end)) - Number(x(start)));
    return html`<rect class="${className}" x="${x(start)}" y="${lane * laneHeight + 4}" width="${length.toFixed(1)}" height="14" rx="2"/>`;
  };
  const common = overlaps(shown);
  const lanes = shown.map((span, lane) => {
    const name = span.owner.length > 34 ? `${span.owner.slice(0, 33)}…` : span.owner;
    const shared = common.filter((one) => one.from < span.to && one.to > span.from);
    return html`<text x="0" y="${lane * laneHeight + 15}">${name}</text>${bar("lane", span.from, span.to, lane)}${shared.map(
      (one) => bar("overlap", Math.max(one.from, span.from), Math.min(one.to, span.to), lane),
    )}`;
  });
  const height = shown.length * laneHeight + 24;
  const rows = [...shown].reverse().map(
    (span) => html`<tr><td>${span.owner}</td><td class="number">${timeText(span.from)}</td>
<td class="number">${durationText(span.to - span.from)}</td><td>${span.end}</td></tr>`,
  );
  return html`<div class="wrap"><svg viewBox="0 0 ${width} ${height}" width="100%" role="img" aria-label="The last ${shown.length} holders; the table below says the same">
${lanes}<line class="axis" x1="${nameWidth}" x2="${width - 10}" y1="${height - 18}" y2="${height - 18}"/>
<text x="${nameWidth}" y="${height - 4}">${timeText(from)} UTC</text><text x="${width - 10}" y="${height - 4}" text-anchor="end">${timeText(to)} UTC</text></svg></div>
${common.length > 0 ? html`<p class="bad">${common.length} times two holders overlap, by their own clocks: the red parts.</p>` : ""}
<details data-focus="timeline"><summary>The same as a table</summary><div class="wrap"><table><thead><tr><th>Holder</th><th>Since (UTC)</th><th>Held for</th><th>Ended</th></tr></thead>
<tbody>${rows}</tbody></table></div></details>`;
}
