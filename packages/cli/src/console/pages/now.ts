import { ageText, parseDuration } from "../../terminal/durations.ts";
import { type KeyRow, keyRows } from "../../view/key-rows.ts";
import { costText } from "../../view/read-cost.ts";
import { countsText, type RowSelection, selectRows } from "../../view/row-selection.ts";
import type { TableSnapshot } from "../../view/table-snapshot.ts";
import { type Html, html } from "../html.ts";
import { foldedPayload, keyLink, leaseBar, stateMark } from "../parts.ts";
import type { Page } from "../server.ts";

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
