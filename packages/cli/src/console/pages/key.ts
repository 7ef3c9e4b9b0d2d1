import type { AuditEntry, DescribedLease, DescribedSeats, KeyDetails } from "@leasehold/client/admin";
import { ageText } from "../../terminal/durations.ts";
import { quoted } from "../../view/command-lines.ts";
import { endText } from "../../view/key-rows.ts";
import { livenessText, renewals, stopForecast } from "../../view/liveness.ts";
import { type Html, html } from "../html.ts";
import { acquisitionId, leaseBar, offer, payload, stateMark, time } from "../parts.ts";
import type { Page } from "../server.ts";
import { type Span, timeline } from "../timeline.ts";
import { auditTable } from "./audit.ts";

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
