// The page of one key: its holder, its line, its past, and what a person can do.

import {
  type DescribedLease,
  type DescribedSeats,
  type DescribedTicket,
  type KeyDetails,
  type LeaseChange,
  LeaseOperator,
} from "@leasehold/client/admin";
import { ageText, shown } from "../terminal/text.ts";
import {
  detailText,
  endedHolds,
  type HistoryEntry,
  historyEntries,
  rememberedHolder,
  whatCell,
} from "../view/history.ts";
import { livenessText, ownerOf, primitivesOf, renewals, stateWord, stopForecast } from "../view/key-rows.ts";
import { quoted } from "../view/next-steps.ts";
import * as column from "./columns.ts";
import {
  acquisitionId,
  badge,
  facts,
  type Html,
  html,
  leaseBar,
  named,
  type Offer,
  offer,
  payloadOf,
  remarked,
  section,
  time,
  toneOf,
} from "./html.ts";
import { jobAddress } from "./job-pages.ts";
import { list } from "./list.ts";
import type { PageRequest } from "./server.ts";
import type { MakePage } from "./table-reader.ts";
import { setAddress } from "./task-pages.ts";

const mostChanges = 200;

const changeColumns: readonly column.Column<HistoryEntry>[] = [
  column.time("When", ({ at }) => at),
  column.state(
    "What",
    ({ what }) => what,
    (entry) => whatCell(entry).text,
  ),
  column.key("Whose lease", ({ owner }) => owner),
  column.age("Held for", ({ heldForMs }) => heldForMs),
  column.text("Detail", detailText),
];

/** One key: its holder, its line, its past, and the possible actions. */
export const keyPage: MakePage = async (request, { connection: { client }, isReadOnly }) => {
  const key = request.query.get("key");
  if (!key) return undefined;
  // A read needs no person's name.
  const operator = new LeaseOperator(client, { by: "console" });
  const details = await operator.describe(key);
  const changes = await Array.fromAsync(operator.history(key, { newestFirst: true, limit: mostChanges }));
  const { readAt, leases, doneSlot, waiting } = details;
  const own = leases.find(isOfLock);
  const others = leases.filter((lease) => lease !== own);
  const kinds = primitivesOf(details);
  const isOther = own === undefined && kinds.some((kind) => kind !== "lock");
  const used = [
    !isOther &&
      html`<p class="lead ${toneOf(own?.state ?? "free")}">${own === undefined ? "Nobody holds the lock." : livenessText(own, readAt)}</p>`,
    kinds.includes("job") && html`<p><a href="${jobAddress(key)}">Its runs as a job</a></p>`,
    kinds.includes("tasks") && html`<p><a href="${setAddress(key)}">Its tasks</a></p>`,
  ];
  const offers = offersOn(own, key, readAt).map((one) => offer(one, isReadOnly));
  return {
    title: key,
    main: html`<h1>${named(key, 100)}</h1>${[...key].length > 100 && html`<p class="dim"><bdi>${key}</bdi></p>`}<div class="columns main">
<section class="card" aria-label="The lock">${used}
${own && holder(own, readAt)}${doneSlot !== undefined && html`<p>The slot <code>${doneSlot}</code> is done.</p>`}${details.seats.map(seatsOf)}</section>
${section("What you can do", html`<ul class="offers">${offers}</ul>`)}</div>
${section("Holders and waiting callers", timeline(spansOf(details, changes), readAt, request))}
${
  others.length > 0 &&
  section(
    "Its other leases",
    list({
      caption: "A lease in each row",
      columns: leaseColumns(readAt),
      rows: others,
      empty: "",
      id: ({ sortKey, fencingToken }) => `${sortKey} ${fencingToken}`,
      request,
      name: "leases-",
    }),
  )
}
${section(
  "Waiting",
  html`${list({
    caption: "A waiting caller in each row",
    columns: ticketColumns(readAt),
    rows: waiting,
    empty: html`Nobody waits in line. Callers that wait without <code>fair()</code> leave nothing in the table.`,
    id: ({ sortKey, owner, joinedAt }) => `${sortKey} ${joinedAt} ${owner}`,
    request,
    name: "line-",
  })}${parkedText(details)}`,
)}
${section(
  "What happened",
  list({
    caption: "A change or an operator's action in each row, the latest first",
    columns: changeColumns,
    rows: historyEntries(changes, details.audit).toReversed(),
    empty: html`Nothing is kept. Tables made with <code>LeaseTable({ history })</code> keep every hold.`,
    id: ({ at, what, fencingToken }) => `${at} ${what} ${fencingToken ?? ""}`,
    request,
  }),
)}`,
    readAt,
  };
};

function holder(lease: DescribedLease, readAt: number): Html {
  const { acquiredAt, expiresAt, fencingToken, revocation, pause, data, invalidData, leaseDurationMs } =
    lease;
  const count = renewals(lease);
  return facts([
    ["Holder", html`<bdi>${ownerOf(lease)}</bdi>`],
    ["Reason", remarked(pause?.reason)],
    ["Since", html`${time(acquiredAt)}, for ${ageText(readAt - acquiredAt)}`],
    ["Ends", html`${leaseBar(lease, readAt)} at ${time(expiresAt)}`],
    ["Lease", `${ageText(leaseDurationMs)}, renewed ${count === 1 ? "once" : `${count} times`}`],
    ["Fencing token", html`<code>${fencingToken}</code>`],
    ["Asked to stop", remarked(revocation)],
    [
      "Data",
      invalidData === undefined
        ? payloadOf(data)
        : html`${badge("error", "no JSON")} <pre tabindex="0">${invalidData}</pre>`,
    ],
  ]);
}

function seatsOf({ sortKey, permits, taken }: DescribedSeats): Html {
  if (sortKey !== "semaphore") {
    return html`<p>Read-write lock: ${taken.read} readers, ${taken.write > 0 ? "1 writer" : "no writer"}${taken.intent > 0 && `, ${taken.intent} waiting to write`}.</p>`;
  }
  const cells = Array.from({ length: Math.min(permits ?? taken.permit, 200) }, (_, index) =>
    index < taken.permit ? html`<span class="mark info">■</span>` : html`<span class="mark">□</span>`,
  );
  return html`<p>Semaphore: ${taken.permit} of ${permits ?? "?"} are taken.</p><div class="strip" aria-hidden="true">${cells}</div>`;
}

const leaseColumns = (readAt: number): readonly column.Column<DescribedLease>[] => [
  column.key("Holder", ({ owner }) => owner),
  column.state(
    "State",
    ({ state }) => state,
    ({ state }) => stateWord(state),
  ),
  column.age("Held for", ({ acquiredAt }) => readAt - acquiredAt),
  column.lease(
    (lease) => lease,
    () => readAt,
  ),
  column.name("Sort key", ({ sortKey }) => sortKey),
  column.data("Data", ({ data }) => data),
];

const ticketColumns = (readAt: number): readonly column.Column<DescribedTicket>[] => [
  column.key("Caller", ({ owner }) => owner),
  column.number("Position", ({ position }) => position),
  column.age("Waits for", ({ joinedAt }) => Math.max(0, readAt - joinedAt)),
  column.age("Its turn in", ({ estimatedWaitMs }) => estimatedWaitMs),
  {
    title: "Its ticket ends",
    cell: ({ expiresAt }) =>
      expiresAt > readAt ? `in ${ageText(expiresAt - readAt)}` : "ended: others pass it",
  },
];

function parkedText({ parked }: KeyDetails): Html | undefined {
  if (parked.count === 0) return undefined;
  return html`<p>${parked.count} workflows wait without polling${parked.since !== undefined && html`, the first since ${time(parked.since)}`}.</p>`;
}

/** One holder's or waiting caller's time. */
interface Span {
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
function timeline(spans: readonly Span[], now: number, request: PageRequest): Html {
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

const isOfLock = ({ sortKey }: { readonly sortKey: string }): boolean => sortKey === "lease";

const mostHolders = 20;
const mostWaiting = 10;

/** The last holders, the present one, and those that come next. */
function spansOf(details: KeyDetails, changes: readonly LeaseChange[]): readonly Span[] {
  const { leases, readAt, waiting } = details;
  const held = endedHolds(changes.filter(isOfLock)).slice(0, mostHolders);
  const past = (held.length > 0 ? held : rememberedHolder(details)).map(
    ({ owner, endedAt: to, heldForMs, ended: state }): Span => {
      return { owner, from: to - heldForMs, to, kind: "past", state };
    },
  );
  const present = leases.filter(isOfLock).map((lease): Span => {
    const { acquiredAt: from, expiresAt, state, pause } = lease;
    const to = Math.max(from, Math.min(readAt, expiresAt));
    return { owner: ownerOf(lease), from, to, kind: pause ? "paused" : "holds", state: stateWord(state) };
  });
  const line = waiting.filter((ticket) => isOfLock(ticket) && ticket.expiresAt > readAt);
  const next = line.slice(0, mostWaiting).map(({ owner, joinedAt: from, position }): Span => {
    return { owner, from, to: Math.max(from, readAt), kind: "waits", state: `place ${position}` };
  });
  return [...past.reverse(), ...present, ...next];
}

const reason = { name: "reason", label: "Reason, kept for 30 days" };

/** The writes that a page offers, on the lease that it shows alone. */
function offersOn(own: DescribedLease | undefined, key: string, readAt: number): readonly Offer[] {
  const word = quoted(key);
  const pause = {
    action: "pause",
    title: "Pause",
    explanation:
      "It closes the lock, once its holder has released it, the semaphore and the read-write lock of the key. Who has a permit or reads keeps it until the end.",
    fields: { key },
    inputs: [
      { name: "for", label: "For how long (30m, 2h, 7d)", value: "1h" },
      { name: "reason", label: "Reason, shown to everybody who looks" },
    ],
    commandLine: `leasehold pause ${word} --for 1h --reason …`,
  };
  if (own === undefined) return [pause];
  const fields = { key, "sort-key": own.sortKey, id: acquisitionId(own) };
  if (own.state === "paused") {
    const resume = { action: "resume", title: "Resume", inputs: [{ ...reason, isOptional: true }] };
    const explanation = "It ends the pause: callers get the lock again.";
    return [{ ...resume, explanation, fields, commandLine: `leasehold resume ${word}` }];
  }
  const explanation =
    "Breaking it does not stop the work: until its holder hears of it, two may be at work. That is safe only if its writes are fenced. Ask it to stop first.";
  return [
    {
      ...{ action: "stop", title: "Ask it to stop", explanation: stopForecast(own, readAt).text, fields },
      ...{ inputs: [{ ...reason, isOptional: true }], commandLine: `leasehold stop ${word}` },
    },
    {
      ...{ action: "break", title: "Break the lease", explanation, fields, inputs: [reason] },
      ...{ word: shown(key), commandLine: `leasehold break ${word}`, isDangerous: true },
    },
    pause,
  ];
}
