// The page of one key, with the times of its holders.

import type { AuditEntry, DescribedLease, DescribedSeats, KeyDetails } from "@leasehold/client/admin";
import { ageText, durationText, timeText } from "../terminal/text.ts";
import { endText, livenessText, renewals, stopForecast } from "../view/key-rows.ts";
import { quoted } from "../view/next-steps.ts";
import { acquisitionId, type Html, html, leaseBar, offer, payload, stateMark, time } from "./html.ts";
import type { Page } from "./server.ts";
import { auditTable } from "./table-pages.ts";

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
function overlaps(spans: readonly Span[]): readonly { readonly from: number; readonly to: number }[] {
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
function timeline(spans: readonly Span[]): Html {
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

const mostShown = 200;

/** One key: its holder, its line, its past, and the possible actions. */
export function keyPage(details: KeyDetails, history: readonly Span[], isReadOnly: boolean): Page {
  const { key, readAt, leases, doneSlot } = details;
  const own = leases.find(({ sortKey }) => sortKey === "lease");
  const others = leases.filter((lease) => lease !== own);
  return {
    title: key,
    main: html`<h1>${key}</h1>
<p>${own === undefined ? html`<span class="dim">Nobody holds the lock.</span>` : html`${stateMark(own.state)} · ${livenessText(own, readAt)}`}</p>
${own === undefined ? "" : holder(own, readAt)}
${doneSlot === undefined ? "" : html`<p>The slot <code>${doneSlot}</code> is done.</p>`}
${details.seats.map((seats) => seatsOf(seats))}
${others.length === 0 ? "" : leaseTable(others, readAt)}
${line(details)}
<h2>Holders until now</h2>${timeline([...history, ...pastSpans(details, history.length > 0), ...spansNow(details)])}
<h2>What operators did</h2>${audit(details.audit)}
<h2>What you can do</h2><ul>${own === undefined ? pauseOffer(key, isReadOnly) : [...actions(own, key, readAt, isReadOnly)]}</ul>`,
  };
}

function holder(lease: DescribedLease, readAt: number): Html {
  const { owner, acquiredAt, expiresAt, fencingToken, revocation, data, invalidData, leaseDurationMs } =
    lease;
  return html`<dl><dt>Holder</dt><dd>${owner}</dd><dt>Since</dt><dd>${time(acquiredAt)}, for ${ageText(readAt - acquiredAt)}</dd>
<dt>Ends</dt><dd>${leaseBar(lease, readAt)} · ${time(expiresAt)} (lease ${ageText(leaseDurationMs)}, renewed ${renewals(lease)} times)</dd>
<dt>Fencing token</dt><dd><code>${fencingToken}</code></dd><dt>Asked to stop</dt><dd>${revocation ?? "no"}</dd>
<dt>Data</dt><dd>${invalidData === undefined ? payload(data) : html`<span class="bad">no JSON:</span> <pre>${invalidData}</pre>`}</dd></dl>`;
}

function seatsOf({ sortKey, permits, taken }: DescribedSeats): Html {
  if (sortKey !== "semaphore") {
    return html`<p>Read-write lock: ${taken.read} readers, ${taken.write > 0 ? "1 writer" : "no writer"}${taken.intent > 0 ? `, ${taken.intent} waiting to write` : ""}.</p>`;
  }
  const all = permits ?? taken.permit;
  const cells = Array.from({ length: Math.min(all, 200) }, (_, index) =>
    index < taken.permit ? html`<span class="cell succeeded">■</span>` : html`<span class="cell">□</span>`,
  );
  return html`<h2>Permits</h2><div class="strip" role="img" aria-label="${taken.permit} of ${permits ?? "an unknown number"} permits are taken">${cells}</div>
<p>${taken.permit} of ${permits ?? "?"} are taken.</p>`;
}

function leaseTable(leases: readonly DescribedLease[], readAt: number): Html {
  const rows = leases.slice(0, mostShown).map(
    (
      lease,
    ) => html`<tr><td><code>${lease.sortKey}</code></td><td>${lease.owner}</td><td>${stateMark(lease.state)}</td>
<td class="number">${ageText(readAt - lease.acquiredAt)}</td><td>${leaseBar(lease, readAt)}</td></tr>`,
  );
  const more = leases.length - rows.length;
  return html`<h2>Its other leases</h2><div class="wrap"><table><thead><tr><th>Sort key</th><th>Holder</th><th>State</th><th class="number">Held for</th><th>Lease</th></tr></thead>
<tbody>${rows}</tbody></table></div>${more > 0 ? html`<p class="dim">${more} more are not shown.</p>` : ""}`;
}

function line({ waiting, parked, readAt }: KeyDetails): Html {
  const rows = waiting.slice(0, mostShown).map(
    ({
      position,
      owner,
      joinedAt,
      expiresAt,
    }) => html`<tr><td class="number">${position}</td><td>${owner}</td><td class="number">${ageText(readAt - joinedAt)}</td>
<td>${expiresAt > readAt ? `in ${ageText(expiresAt - readAt)}` : html`<span class="dim">ended: others pass it</span>`}</td></tr>`,
  );
  const sleeping =
    parked.count === 0
      ? ""
      : html`<p>${parked.count} workflows wait without polling${parked.since === undefined ? "" : html`, the first since ${time(parked.since)}`}.</p>`;
  if (rows.length === 0) {
    return html`<h2>Waiting</h2><p class="dim">Nobody waits in line. Callers that wait without <code>fair()</code> leave nothing in the table.</p>${sleeping}`;
  }
  return html`<h2>Waiting</h2><div class="wrap"><table><thead><tr><th class="number">Position</th><th>Caller</th><th class="number">Waits for</th><th>Its ticket ends</th></tr></thead>
<tbody>${rows}</tbody></table></div>${sleeping}`;
}

function pastSpans({ lastHolder }: KeyDetails, isInHistory: boolean): readonly Span[] {
  if (lastHolder === undefined || isInHistory) return [];
  const { owner, acquiredAt, endedAt, end } = lastHolder;
  return [{ owner, from: acquiredAt, to: endedAt, end: endText(end) }];
}

function spansNow({ leases, readAt }: KeyDetails): readonly Span[] {
  const own = leases.find(({ sortKey }) => sortKey === "lease");
  if (own === undefined) return [];
  const to = Math.max(own.acquiredAt, Math.min(readAt, own.expiresAt));
  return [{ owner: own.owner, from: own.acquiredAt, to, end: own.state }];
}

function audit(entries: readonly AuditEntry[]): Html {
  return entries.length === 0
    ? html`<p class="dim">Nothing is kept.</p>`
    : auditTable([...entries].reverse(), false);
}

function* actions(lease: DescribedLease, key: string, readAt: number, isReadOnly: boolean): Generator<Html> {
  const fields = { key, "sort-key": lease.sortKey, id: acquisitionId(lease) };
  const word = quoted(key);
  if (lease.state === "paused") {
    const resume = `leasehold resume ${word}`;
    const explanation = "It ends the pause: callers get the lock again.";
    const inputs = [{ name: "reason", label: "Reason", isOptional: true }];
    yield offer(
      "resume",
      { action: "resume", title: "Resume", explanation, fields, inputs, commandLine: resume },
      isReadOnly,
    );
    return;
  }
  const reason = { name: "reason", label: "Reason, kept for 30 days" };
  const stop = {
    action: "stop",
    title: "Ask it to stop",
    explanation: stopForecast(lease, readAt).text,
    fields,
    inputs: [{ ...reason, isOptional: true }],
    commandLine: `leasehold stop ${word}`,
  };
  yield offer("stop", stop, isReadOnly);
  const explanation = html`Breaking it does not stop the work: until its holder hears of it, two may be at work. That is safe only if its
writes are fenced. Ask it to stop first.`;
  const breaking = {
    action: "break",
    title: "Break the lease",
    explanation,
    fields,
    inputs: [reason],
    word: key,
  };
  yield offer(
    "break",
    { ...breaking, commandLine: `leasehold break ${word}`, isDangerous: true },
    isReadOnly,
  );
  yield pauseOffer(key, isReadOnly);
}

function pauseOffer(key: string, isReadOnly: boolean): Html {
  const inputs = [
    { name: "for", label: "For how long (30m, 2h, 7d)", value: "1h" },
    { name: "reason", label: "Reason, shown to everybody who looks" },
  ];
  const explanation =
    "It closes the lock, once its holder has released it, the semaphore and the read-write lock of the key. Who has a permit or reads keeps it until the end.";
  const commandLine = `leasehold pause ${quoted(key)} --for 1h --reason …`;
  return offer(
    "pause",
    { action: "pause", title: "Pause", explanation, fields: { key }, inputs, commandLine },
    isReadOnly,
  );
}
