// The pages of the whole table: its locks, what operators did, and the table itself.

import type { AuditEntry } from "@leasehold/client/admin";
import { messageOf } from "../exit-codes.ts";
import type { Finding } from "../table/findings.ts";
import { ageText, parseDuration } from "../terminal/text.ts";
import { type KeyRow, keyRows, type Primitive, primitivesOf } from "../view/key-rows.ts";
import { costText, dollarsText } from "../view/read-cost.ts";
import { countsText, type RowSelection, selectRows } from "../view/rows.ts";
import { clockNotice, type TableSnapshot } from "../view/table-snapshot.ts";
import { foldedPayload, type Html, html, keyLink, leaseBar, stateMark, time } from "./html.ts";
import type { PageContext } from "./pages.ts";
import type { Page } from "./server.ts";

const mostRows = 1_000;
const longWaitMs = 5 * 60_000;

/** The locks, as they are now. */
export function nowPage(snapshot: TableSnapshot, query: URLSearchParams): Page {
  const { selection, prefix, problem } = selectionIn(query);
  const rows = selectRows(snapshot, selection).filter(
    ({ key, state }) => key.startsWith(prefix) && (!query.has("paused") || state === "paused"),
  );
  const shown = rows.slice(0, mostRows);
  const more = rows.length - shown.length;
  return {
    title: "Locks",
    main: html`<h1>Locks</h1>${attention(snapshot)}${filter(query, problem)}
${shown.length === 0 ? html`<p class="dim">No lock here: nothing is held, or the filters leave nothing.</p>` : list(shown, snapshot.readAt)}
<p class="dim">${countsText(rows)}${more > 0 ? ` (${more} more are not shown: filter them)` : ""}</p>`,
    footer: html`${costText(snapshot.cost)} for this look.`,
  };
}

/** The filters in the address. */
function selectionIn(query: URLSearchParams): {
  readonly selection: RowSelection;
  readonly prefix: string;
  readonly problem: string | undefined;
} {
  const older = query.get("older") || undefined;
  const parsed = older === undefined ? undefined : parseDuration(older);
  const sort = (["age", "key", "ends"] as const).find((one) => one === query.get("sort"));
  return {
    prefix: query.get("prefix") ?? "",
    problem: typeof parsed === "object" ? `"${older}" is no duration; ${parsed.advice}` : undefined,
    selection: {
      all: query.has("all"),
      expired: query.has("expired"),
      tombstones: query.has("free"),
      owner: query.get("owner") || undefined,
      olderMs: typeof parsed === "number" ? parsed : undefined,
      sort,
    },
  };
}

function filter(query: URLSearchParams, problem: string | undefined): Html {
  const box = (name: string, label: string): Html =>
    html`<label><input type="checkbox" name="${name}" value="1"${query.has(name) ? html` checked` : ""}> ${label}</label>`;
  const field = (name: string, label: string, size: number): Html =>
    html`<label>${label} <input name="${name}" size="${size}" value="${query.get(name) ?? ""}"></label>`;
  return html`<form class="filter" method="get" action="/" role="search">${field("prefix", "Begins with", 14)}${field("owner", "Holder", 14)}
${field("older", "Held for at least", 5)}${box("expired", "expired")}${box("paused", "paused")}${box("free", "free too")}${box("all", "jobs and tasks too")}
<button>Filter</button></form>${problem === undefined ? "" : html`<p class="bad">${problem}</p>`}`;
}

function list(rows: readonly KeyRow[], readAt: number): Html {
  const line = (row: KeyRow): Html => {
    const { key, primitive, state, stateText, lease, owner, heldForMs, waiting, parked, note } = row;
    const version = `${lease?.fencingToken ?? ""} ${stateText} ${waiting} ${parked}`;
    return html`<tr data-row="${`${primitive} ${key}`}" data-version="${version}"><td>${keyLink(key)}</td><td>${stateMark(state, stateText)}</td><td>${owner}</td>
<td class="number">${heldForMs === undefined ? "" : ageText(heldForMs)}</td><td>${lease === undefined ? "" : leaseBar(lease, readAt)}</td>
<td class="number">${waiting + parked || ""}</td><td class="wide">${note}${lease?.data === undefined || lease.pause !== undefined ? "" : foldedPayload(lease.data, `data ${key}`)}</td></tr>`;
  };
  return html`<div class="wrap"><table><caption>A row for each key</caption>
<thead><tr><th scope="col">Key</th><th scope="col">State</th><th scope="col">Holder</th><th scope="col" class="number">Held for</th><th scope="col">Lease</th>
<th scope="col" class="number">Waiting</th><th scope="col" class="wide">Note</th></tr></thead><tbody>${rows.map(line)}</tbody></table></div>`;
}

/** The rows that need a person. */
function attention(snapshot: TableSnapshot): Html | "" {
  const { readAt } = snapshot;
  const rows = snapshot.keys.flatMap(keyRows);
  const found = rows.flatMap((row): Html[] => {
    const { key, state, lease, waiting, longestWaitMs, remainingMs } = row;
    const link = keyLink(key);
    return [
      ...(state === "expired" && waiting === 0 && remainingMs !== undefined && -remainingMs > longWaitMs
        ? [
            html`${link} expired ${ageText(-remainingMs)} ago, and nobody has wanted it since: its holder (${lease?.owner}) ended without a release.`,
          ]
        : []),
      ...(longestWaitMs !== undefined && longestWaitMs > longWaitMs
        ? [html`${link}: the first in line has waited for ${ageText(longestWaitMs)}.`]
        : []),
    ];
  });
  const unreadable = snapshot.unreadable.map(({ key, message }) => html`${key ?? "?"}: ${message}`);
  const all = [...found, ...unreadable];
  if (all.length === 0) return "";
  const shown = all.slice(0, 10).map((one) => html`<li>${one}</li>`);
  const more = all.length > 10 ? html`<li>and ${all.length - 10} more</li>` : "";
  return html`<section class="notice" aria-label="Needs attention"><strong>Needs attention</strong><ul>${shown}${more}</ul><span class="dim">Read at ${new Date(readAt).toISOString().slice(11, 19)} UTC</span></section>`;
}

const mostEntries = 500;

/** The operators' actions and their reasons, the latest first. */
export function auditPage({ keys, cost }: TableSnapshot): Page {
  const entries = keys.flatMap(({ audit }) => audit).sort((one, other) => other.at - one.at);
  const shown = entries.slice(0, mostEntries);
  return {
    title: "Audit",
    main: html`<h1>What operators did</h1>${shown.length === 0 ? html`<p class="dim">Nothing in the last 30 days.</p>` : auditTable(shown, true)}
${entries.length > shown.length ? html`<p class="dim">${entries.length - shown.length} older ones are not shown.</p>` : ""}`,
    footer: html`${costText(cost)} for this look.`,
  };
}

/** A line for each action. */
export function auditTable(entries: readonly AuditEntry[], withKeys: boolean): Html {
  const rows = entries.map(
    ({
      key,
      sortKey,
      at,
      action,
      by,
      reason,
      holder,
      until,
    }) => html`<tr><td>${time(at)}</td>${withKeys ? html`<td>${keyLink(key)}</td>` : ""}
<td>${action}${sortKey === "lease" ? "" : html` <code>${sortKey}</code>`}</td><td>${by}</td><td>${reason ?? ""}</td>
<td>${holder?.owner ?? ""}${until === undefined ? "" : html` until ${time(until)}`}</td></tr>`,
  );
  return html`<div class="wrap"><table><thead><tr><th>When</th>${withKeys ? html`<th>Key</th>` : ""}<th>What</th><th>By</th><th>Reason</th><th>Whose lease</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

const secondsPerMonth = 30 * 24 * 60 * 60;

/** The table: its content, the cost of reading it, and what the console may do there. */
export async function tablePage({ connection, reader, isReadOnly, health }: PageContext): Promise<Page> {
  const { client, place, tableName } = connection;
  const { keys, cost, unreadable } = await reader.read();
  const counts = new Map<Primitive, number>();
  for (const key of keys) {
    for (const primitive of primitivesOf(key)) counts.set(primitive, (counts.get(primitive) ?? 0) + 1);
  }
  const notice = clockNotice(client);
  const perMonth = (cost.dollars * secondsPerMonth * 1_000) / reader.everyMs;
  const facts: readonly (readonly [string, string | number])[] = [
    ["Place", place],
    ["Items", cost.items],
    ["Size of what was read", `${(cost.bytes / 1024).toFixed(1)} KB`],
    ...[...counts].map(([primitive, count]) => [`Keys of ${primitive}`, count] as const),
    ["Items that cannot be read", unreadable.length],
    ["One look", costText(cost)],
    [
      "A page that stays open",
      `looks every ${(reader.everyMs / 1000).toFixed(0)} s: about ${dollarsText(perMonth)} a month`,
    ],
  ];
  return {
    title: "Table",
    main: html`<h1>${tableName}</h1>${notice === undefined ? "" : html`<p class="notice">${notice}</p>`}
<dl>${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
${unreadable.length === 0 ? "" : html`<h2>Items that cannot be read</h2><ul>${unreadable.slice(0, 100).map(({ message }) => html`<li>${message}</li>`)}</ul>`}
<h2>Health</h2>${await healthOf(health)}
<p class="dim"><code>leasehold doctor</code> tries permissions, clocks and latency, too.</p>
<h2>What the console needs</h2><p>${isReadOnly ? "It only reads" : "It writes, too"}: <code>leasehold table policy ${isReadOnly ? "read" : "operate"}</code> prints the policy.
Give it no more: a console that is read-only by its role cannot be talked into a write.</p>`,
    footer: html`${costText(cost)} for this look.`,
  };
}

const classes: Readonly<Record<Finding["result"], string>> = {
  ok: "good",
  warning: "warn",
  error: "bad",
  "not checked": "dim",
};

/** The findings on the table's settings; or why they cannot be read. */
async function healthOf(health: PageContext["health"]): Promise<Html> {
  try {
    const findings = await health();
    return html`<div class="wrap"><table><thead><tr><th>Check</th><th>Result</th><th>What was found</th></tr></thead><tbody>${findings.map(
      ({
        check,
        result,
        text,
        fix,
      }) => html`<tr><td>${check}</td><td class="${classes[result]}">${result}</td>
<td>${text}${fix === undefined ? "" : html`<br><span class="dim">fix: ${fix}</span>`}</td></tr>`,
    )}</tbody></table></div>`;
  } catch (error) {
    return html`<p class="warn">The settings cannot be seen: ${messageOf(error)}</p>`;
  }
}
