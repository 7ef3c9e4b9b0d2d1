// The frame of every page: where it looks, whether it writes, the clock, and the navigation.

import { durationText } from "../terminal/text.ts";
import type { ReadCost } from "../view/read-cost.ts";
import { costText } from "../view/read-cost.ts";
import { type Html, html, named, time } from "./html.ts";

/** Where a console looks, and whether it writes. */
export interface Environment {
  readonly table: string;
  /** What else is known of the place: region, account, profile, endpoint. */
  readonly facts: readonly string[];
  readonly isReadOnly: boolean;
}

/** A page: its title and what it shows. */
export interface Page {
  readonly status?: number;
  readonly title: string;
  readonly main: Html;
  /** When its content was read: epoch milliseconds of the service's clock. */
  readonly readAt?: number;
  readonly cost?: ReadCost;
}

/** The pages, in the order of the navigation, and the beginnings of the paths that belong to them. */
const navigation = [
  { path: "/", name: "Locks", within: "/key" },
  { path: "/jobs", name: "Jobs", within: "/jobs" },
  { path: "/tasks", name: "Tasks", within: "/tasks" },
  { path: "/table", name: "Table", within: "/table" },
  { path: "/audit", name: "Audit", within: "/audit" },
] as const;

const colors = 6;

/** A place keeps its colour; red is for writing alone. */
function colorOf({ table, facts }: Environment): number {
  return (
    [...[table, ...facts].join(" ")].reduce(
      (sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9_973,
      0,
    ) % colors
  );
}

/** The whole document of a page. A page for people without a session does not name the table. */
export function documentOf(page: Page, path: string, environment: Environment, everyMs: number): Html {
  const isLocked = page.status === 401;
  const { table, isReadOnly } = environment;
  const mode = isReadOnly ? "read" : "write";
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${isLocked ? page.title : `${page.title} · ${table}${isReadOnly ? "" : " · WRITES"}`} · Leasehold</title>
<link rel="icon" href="/${mode}.svg">
<link rel="stylesheet" href="/style.css">
</head>
<body data-every-ms="${page.status === undefined ? everyMs : 0}" data-mode="${isLocked ? "locked" : mode}">
<a class="skip" href="#main">Skip to the content</a>
<header><strong class="brand">${lockOf("currentcolor", 20)}<span>Leasehold</span></strong>${isLocked ? "" : frame(path, environment)}</header>
<p id="state" role="status"></p>
<main id="main" tabindex="-1">${page.main}</main>
<footer>${page.readAt === undefined ? "" : html`<span>Read at ${time(page.readAt)}</span>`}${
    page.cost === undefined
      ? ""
      : html`<span>${costText(page.cost)} for this look</span><span>looks again every ${durationText(everyMs)}</span>`
  }</footer>
<script src="/script.js" defer></script>
</body>
</html>
`;
}

function frame(path: string, environment: Environment): Html {
  const { table, facts, isReadOnly } = environment;
  const links = navigation.map(({ path: target, name, within }) => {
    const isCurrent = path === target || path.startsWith(within);
    return html`<a href="${target}"${isCurrent ? html` aria-current="page"` : ""}>${name}</a>`;
  });
  const mode = isReadOnly
    ? html`<p class="mode">Read-only</p>`
    : html`<p class="mode" title="Its buttons stop, break, pause, skip and requeue">Writes</p>`;
  return html`<p class="environment color${colorOf(environment)}"><span class="hidden">Table </span><b>${named(table, 40)}</b>${facts.map((fact) => html` <span>${fact}</span>`)}</p>
${mode}
<div class="switches"><fieldset><legend class="hidden">Clock</legend><label><input type="radio" name="clock" value="utc" checked><span>UTC</span></label><label><input type="radio" name="clock" value="local"><span>local</span></label></fieldset>
<label class="check"><input type="checkbox" id="live" checked> Live</label></div>
<nav aria-label="Pages">${links}</nav>`;
}

export const lockedPage: Page = {
  status: 401,
  title: "Open the console",
  main: html`<section class="card"><h1>Open the console</h1><p>Open the whole address that the console has printed in its terminal: the part behind
<code>#</code> opens it. Or type the secret: that part, or what is in the file of <code>--auth-token-file</code>.</p>
<form data-opens-session><label>Secret<input type="password" name="secret" autocomplete="current-password" required></label>
<p class="buttons"><button>Open</button> <span role="status"></span></p></form></section>`,
};

export function refusalPage(status: number, title: string, reason: string): Page {
  return {
    status,
    title,
    main: html`<section class="card"><h1>${title}</h1><p class="problem">${reason}</p><p><a href="/">Back to the locks</a></p></section>`,
  };
}

/** A closed lock. */
function lockOf(color: string, size: number): Html {
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="${size}" height="${size}" aria-hidden="true"><path d="M9 14V10a7 7 0 0 1 14 0v4" fill="none" stroke="${color}" stroke-width="4"/><rect x="5" y="14" width="22" height="15" rx="3" fill="${color}"/></svg>`;
}

/** The icons of the tabs: red where the console writes. */
export const icons = {
  read: lockOf("#3b82f6", 32).toString(),
  write: lockOf("#d93025", 32).toString(),
} as const;
