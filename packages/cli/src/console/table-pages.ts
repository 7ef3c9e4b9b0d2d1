// The pages of the whole table: its locks, what operators did, and the table itself.

import type { AuditEntry } from "@leasehold/client/admin";
import { messageOf } from "../exit-codes.ts";
import type { Finding } from "../table/findings.ts";
import { ageText, durationText, parseDuration } from "../terminal/text.ts";
import { type KeyRow, keyRows, type Primitive, primitivesOf } from "../view/key-rows.ts";
import { costText, dollarsText, secondsOfMonth } from "../view/read-cost.ts";
import { globTest, isIdle, selectRows } from "../view/rows.ts";
import { clockNotice, type TableSnapshot } from "../view/table-snapshot.ts";
import * as column from "./columns.ts";
import {
  facts,
  type Html,
  html,
  keyAddress,
  keyLink,
  named,
  payloadOf,
  remarked,
  section,
  time,
} from "./html.ts";
import { filters, list, tabs } from "./list.ts";
import type { PageRequest } from "./server.ts";
import type { MakePage, PageContext } from "./table-reader.ts";

const longWaitMs = 5 * 60_000;

const isIn =
  (...states: readonly string[]) =>
  ({ state }: KeyRow): boolean =>
    states.includes(state);

/** The states that the list of locks may show alone. */
const views: readonly {
  readonly state?: string;
  readonly label: string;
  readonly has: (row: KeyRow) => boolean;
}[] = [
  { label: "In use", has: (row) => !isIdle(row) },
  { state: "held", label: "Held", has: isIn("held", "stopping", "grace") },
  { state: "wanted", label: "Waited for", has: ({ waiting, parked }) => waiting + parked > 0 },
  {
    state: "expired",
    label: "Expired",
    has: ({ leases }) => leases.some(({ state }) => state === "expired"),
  },
  { state: "paused", label: "Paused", has: isIn("paused") },
  { state: "closed", label: "Closed", has: isIn("cooldown") },
  { state: "free", label: "Free", has: isIn("free") },
];

const lockColumns: readonly column.Column<KeyRow>[] = [
  column.key("Key", ({ key }) => key, keyAddress),
  column.state(
    "State",
    ({ state }) => state,
    ({ stateText }) => stateText,
  ),
  column.name("Holder", ({ owner }) => owner),
  column.age("Held for", ({ heldForMs }) => heldForMs),
  column.lease(
    ({ lease }) => lease,
    ({ readAt }) => readAt,
  ),
  column.number("Waiting", ({ waiting, parked }) => waiting + parked || undefined),
  {
    title: "Note",
    kind: "long",
    cell: ({ note, lease }) =>
      html`${remarked(note)} ${lease?.pause === undefined && payloadOf(lease?.data)}`,
  },
];

/** The locks, as they are now. */
export const locksPage: MakePage = async (request, { table }) => {
  const { query } = request;
  const snapshot = await table.get();
  const older = query.get("older") || undefined;
  const parsed = older === undefined ? undefined : parseDuration(older);
  const rows = selectRows(snapshot, {
    all: query.has("all"),
    tombstones: true,
    owner: query.get("owner") || undefined,
    older: typeof parsed === "number" ? parsed : undefined,
  }).filter(({ key }) => key.startsWith(query.get("prefix") ?? ""));
  const view = views.find(({ state }) => state === (query.get("state") ?? undefined)) ?? views[0];
  const offered = [
    { name: "prefix", label: "Key begins with", example: "orders/" },
    { name: "owner", label: "Holder", example: "worker-*" },
    { name: "older", label: "Held for at least", example: "10m" },
    { name: "all", label: "jobs and tasks too" },
  ];
  const problem = typeof parsed === "object" ? `"${older}" is no duration; ${parsed.advice}.` : undefined;
  return {
    title: "Locks",
    main: html`<h1>Locks</h1>${attention(snapshot)}
${tabs(
  request,
  views.map(({ has, ...tab }) => ({ ...tab, count: rows.filter(has).length })),
)}
<section class="card">${filters(request, offered, problem)}
${list({
  caption: "A row for each key",
  columns: lockColumns,
  rows: rows.filter((row) => view?.has(row)),
  empty: "No lock here: nothing is held, or the filters leave nothing.",
  id: ({ key, primitive }) => `${primitive} ${key}`,
  version: ({ lease, stateText, waiting, parked }) =>
    `${lease?.fencingToken ?? ""} ${stateText} ${waiting} ${parked}`,
  request,
})}</section>`,
    readAt: snapshot.readAt,
    cost: snapshot.cost,
  };
};

const mostNotices = 5;

/** The rows that need a person. */
function attention(snapshot: TableSnapshot): Html | undefined {
  const found = snapshot.keys.flatMap(keyRows).flatMap((row): Html[] => {
    const { key, state, lease, waiting, longestWaitMs, remainingMs = 0 } = row;
    if (state === "expired" && waiting === 0 && lease !== undefined && -remainingMs > longWaitMs)
      return [
        html`${keyLink(key)} expired ${ageText(-remainingMs)} ago: its holder ${named(lease.owner, 40)} ended without a release. The next caller takes it over.`,
      ];
    if (longestWaitMs !== undefined && longestWaitMs > longWaitMs)
      return [html`${keyLink(key)}: the first in line has waited for ${ageText(longestWaitMs)}.`];
    return [];
  });
  const all = [
    ...found,
    ...snapshot.unreadable.map(({ key, message }) => html`${named(key ?? "?")}: ${message}`),
  ];
  if (all.length === 0) return undefined;
  const more = all.length - mostNotices;
  return html`<section class="card notice" aria-label="Needs attention"><h2>Needs attention</h2><ul>${all.slice(0, mostNotices).map((one) => html`<li>${one}</li>`)}</ul>
${more > 0 ? html`<p class="dim">and ${more} more: see <a href="/?state=expired&amp;sort=ends">the expired ones</a>, <a href="/?state=wanted&amp;sort=-waiting">those that callers wait for</a>, and <a href="/table">the table</a>.</p>` : ""}</section>`;
}

const auditColumns: readonly column.Column<AuditEntry>[] = [
  column.time("When", ({ at }) => at),
  column.state("What", ({ action }) => action),
  column.key("Key", ({ key }) => key, keyAddress),
  column.name("By", ({ by }) => by),
  column.text("Reason", ({ reason }) => reason),
  {
    title: "Whose lease",
    cell: ({ holder, sortKey, until }) =>
      html`${named(holder?.owner, 40)} ${sortKey !== "lease" && html`<code>${named(sortKey, 40)}</code>`} ${until !== undefined && html`until ${time(until)}`}`,
  },
];

/** The operators' actions and their reasons, the latest first. */
export const auditPage: MakePage = async (request, { table }) => {
  const { keys, cost, readAt } = await table.get();
  const [prefix, by] = [request.query.get("prefix") ?? "", request.query.get("by")];
  const isBy = by ? globTest(by) : () => true;
  const entries = keys
    .flatMap(({ audit }) => audit)
    .filter((entry) => entry.key.startsWith(prefix) && isBy(entry.by))
    .sort((one, other) => other.at - one.at);
  const offered = [
    { name: "prefix", label: "Key begins with", example: "orders/" },
    { name: "by", label: "By", example: "alice@*" },
  ];
  return {
    title: "Audit",
    main: html`<h1>What operators did</h1><section class="card">${filters(request, offered)}
${list({
  caption: "An operator's action in each row",
  columns: auditColumns,
  rows: entries,
  empty: "Nothing in the last 30 days, or the filters leave nothing.",
  id: ({ key, sortKey, at, action }) => `${at} ${action} ${sortKey} ${key}`,
  request,
})}</section>`,
    readAt,
    cost,
  };
};

const findingColumns: readonly column.Column<Finding>[] = [
  column.key("Check", ({ check }) => check),
  column.state("Result", ({ result }) => result),
  column.text("What was found", ({ text }) => text),
  column.text("What to do", ({ fix }) => fix),
];

/** The table: its content, the cost of reading it, and what the console may do there. */
export const tablePage: MakePage = async (request, context) => {
  const { connection, table, isReadOnly } = context;
  const { client, place, tableName } = connection;
  const { keys, cost, unreadable, readAt } = await table.get();
  const counts = new Map<Primitive, number>();
  for (const key of keys) {
    for (const primitive of primitivesOf(key)) counts.set(primitive, (counts.get(primitive) ?? 0) + 1);
  }
  const notice = clockNotice(client);
  const perMonth = (cost.dollars * secondsOfMonth * 1_000) / table.forMs;
  const broken = unreadable.slice(0, 100).map(({ message }) => html`<li>${message}</li>`);
  return {
    title: "Table",
    main: html`<h1>${named(tableName)}</h1>${notice !== undefined && html`<p class="card notice">${notice}</p>`}
<div class="columns">${section(
      "Content",
      facts([
        ["Place", place],
        ["Items", cost.items.toLocaleString("en-US")],
        ["Size of what was read", `${(cost.bytes / 1024).toFixed(1)} KB`],
        ...[...counts].map(([primitive, count]) => [`Keys of ${primitive}`, count] as const),
        ["Items that cannot be read", unreadable.length],
      ]),
    )}
${section(
  "What looking costs",
  html`${facts([
    ["One look", costText(cost)],
    [
      "A page that stays open",
      `looks every ${durationText(table.forMs)}: about ${dollarsText(perMonth)} a month`,
    ],
  ])}<p>${isReadOnly ? "The console only reads" : "The console writes, too"}: <code>leasehold table policy ${isReadOnly ? "read" : "operate"}</code> prints the policy.
Give it no more: a console that is read-only by its role cannot be talked into a write.</p>`,
)}</div>
${unreadable.length > 0 && section("Items that cannot be read", html`<ul>${broken}</ul>`)}
${section("Health", await healthOf(request, context), html`<code>leasehold doctor</code> tries permissions, clocks and latency, too.`)}`,
    readAt,
    cost,
  };
};

/** The findings on the table's settings; or why they cannot be read. */
async function healthOf(request: PageRequest, { health }: PageContext): Promise<Html> {
  try {
    const rows = await health.get();
    return list({
      caption: "A check in each row",
      columns: findingColumns,
      rows,
      empty: "Nothing to check.",
      id: ({ check, text }) => `${check} ${text}`,
      request,
    });
  } catch (error) {
    return html`<p class="problem">The settings cannot be seen: ${messageOf(error)}</p>`;
  }
}
