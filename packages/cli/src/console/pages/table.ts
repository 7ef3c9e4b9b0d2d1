import { messageOf } from "../../exit-codes.ts";
import type { Finding } from "../../table/findings.ts";
import { type Primitive, primitivesOf } from "../../view/key-rows.ts";
import { costText, dollarsText } from "../../view/read-cost.ts";
import { clockNotice } from "../../view/service-time.ts";
import { type Html, html } from "../html.ts";
import type { PageContext } from "../pages.ts";
import type { Page } from "../server.ts";

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
<h2>What the console needs</h2><p>${isReadOnly ? "It only reads" : "It writes, too"}: <code>leasehold iam ${isReadOnly ? "--read" : "--operate"}</code> prints the policy.
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
