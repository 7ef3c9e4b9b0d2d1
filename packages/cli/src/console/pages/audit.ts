import type { AuditEntry } from "@leasehold/client/admin";
import { costText } from "../../view/read-cost.ts";
import type { TableSnapshot } from "../../view/table-snapshot.ts";
import { type Html, html } from "../html.ts";
import { keyLink, time } from "../parts.ts";
import type { Page } from "../server.ts";

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
