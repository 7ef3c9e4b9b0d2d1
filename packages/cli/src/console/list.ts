// Lists: columns that sort, pages of rows, and filters that can be taken away. The address of a page says all of it, so
// that a link shows others the same.

import type { Column } from "./columns.ts";
import { type Html, type HtmlValue, html, named } from "./html.ts";
import type { PageRequest } from "./server.ts";

/** A list, and where it is on its page. */
export interface List<Row> {
  /** What it is a list of, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Shown without rows. */
  readonly empty: HtmlValue;
  /** Names a row, so that a later look knows it again. */
  readonly id: (row: Row) => string;
  /** What a person should notice when it changes. */
  readonly version?: (row: Row) => string;
  readonly request: PageRequest;
  /** Rows of other pages are not known: then nothing sorts. @default false */
  readonly isPart?: boolean;
  /** Keeps its order and its pages apart from those of other lists on the page. @default "" */
  readonly name?: string;
}

/** Rows of one page. */
const usualSize = 100;

/** The address of the same page with other parameters; undefined takes one away. */
export function address(
  { path, query }: PageRequest,
  changes: Readonly<Record<string, string | undefined>>,
): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) next.delete(name);
    else next.set(name, value);
  }
  return next.size === 0 ? path : `${path}?${next}`;
}

/** A table, which is a list of cards on a narrow screen. */
export function list<Row>(given: List<Row>): Html {
  const { caption, rows, empty, id, version, request, isPart = false, name = "" } = given;
  const columns: readonly Column<Row>[] = isPart
    ? given.columns.map(({ by: _, ...column }) => column)
    : given.columns;
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const [sortName, pageName] = [`${name}sort`, `${name}page`];
  const order = request.query.get(sortName) ?? "";
  const isDown = order.startsWith("-");
  const sorting = columns.find(
    ({ title, by }) => by !== undefined && slug(title) === order.replace(/^-/, ""),
  );
  const sorted = sorting?.by === undefined ? rows : sortedBy(rows, sorting.by, isDown);
  const { shown, pages } = paged(sorted, { caption, request, name });
  const heads = columns.map((column) => {
    const { title, by, kind = "text" } = column;
    const isSorting = column === sorting;
    const next = (isSorting ? !isDown : kind === "number") ? `-${slug(title)}` : slug(title);
    const content =
      by === undefined
        ? title
        : html`<a href="${address(request, { [sortName]: next, [pageName]: undefined })}">${title}<span class="order" aria-hidden="true">${isSorting ? (isDown ? "▼" : "▲") : "↕"}</span></a>`;
    const state = isSorting ? html` aria-sort="${isDown ? "descending" : "ascending"}"` : "";
    return html`<th role="columnheader" scope="col" class="${kind}${by === undefined ? "" : " sorts"}"${state}>${content}</th>`;
  });
  const lines = shown.map(
    (row) =>
      html`<tr role="row" data-row="${id(row)}"${version === undefined ? "" : html` data-version="${version(row)}"`}>${columns.map(
        ({ title, cell, kind = "text" }) => {
          const content = html`${cell(row)}`;
          // Only a cell without anything in it is left out on a narrow screen.
          return html`<td role="cell" class="${kind}" data-label="${title}">${content.toString().trim() !== "" && content}</td>`;
        },
      )}</tr>`,
  );
  // The roles keep the table a table where a narrow screen shows it as cards.
  return html`<div class="list"><table role="table"><caption>${caption}</caption><thead role="rowgroup"><tr role="row">${heads}</tr></thead><tbody role="rowgroup">${lines}</tbody></table></div>${pages}`;
}

/** The entries of the page that the address names, and links to the others; undefined if there are none. */
export function paged<T>(
  entries: readonly T[],
  {
    caption,
    request,
    name = "",
    size = usualSize,
  }: Pick<List<T>, "caption" | "request" | "name"> & { readonly size?: number },
): { readonly shown: readonly T[]; readonly pages: Html | undefined } {
  const last = Math.max(1, Math.ceil(entries.length / size));
  const page = Math.min(last, Math.max(1, Math.floor(Number(request.query.get(`${name}page`))) || 1));
  const [from, to] = [(page - 1) * size, Math.min(entries.length, page * size)];
  const shown = entries.slice(from, to);
  if (last === 1) return { shown, pages: undefined };
  const count = (number: number): string => number.toLocaleString("en-US");
  const link = (target: number, text: string): Html =>
    target === page || target < 1 || target > last
      ? html`<span class="dim" aria-disabled="true">${text}</span>`
      : html`<a href="${address(request, { [`${name}page`]: target === 1 ? undefined : String(target) })}">${text}</a>`;
  const pages = html`<nav class="pager" aria-label="${`Pages: ${caption}`}">${link(1, "First")} ${link(page - 1, "Previous")} <span>${count(from + 1)}–${count(to)} of ${count(entries.length)}</span> ${link(page + 1, "Next")} ${link(last, "Last")}</nav>`;
  return { shown, pages };
}

function slug(title: string): string {
  return title.toLowerCase().replaceAll(" ", "-");
}

/** Rows without a value come last, in both directions. */
function sortedBy<Row>(
  rows: readonly Row[],
  by: (row: Row) => string | number | undefined,
  isDown: boolean,
): readonly Row[] {
  const known = rows.flatMap((row) => {
    const value = by(row);
    return value === undefined ? [] : [{ row, value }];
  });
  known.sort(({ value: one }, { value: other }) => (one === other ? 0 : one < other === isDown ? 1 : -1));
  return [...known.map(({ row }) => row), ...rows.filter((row) => by(row) === undefined)];
}

export interface Filter {
  readonly name: string;
  readonly label: string;
  /** An example of its value; a filter without one is on or off. */
  readonly example?: string;
}

/** A form with the filters, and each active one with a link that takes it away. */
export function filters(request: PageRequest, offered: readonly Filter[], problem?: string): Html {
  const { path, query } = request;
  const active = offered.filter(({ name }) => query.get(name));
  const fields = offered.map(({ name, label, example }) =>
    example === undefined
      ? html`<label class="check"><input type="checkbox" name="${name}" value="1"${query.get(name) ? html` checked` : ""}> ${label}</label>`
      : html`<label>${label}<input name="${name}" value="${query.get(name) ?? ""}" placeholder="${example}" autocomplete="off"></label>`,
  );
  // What is no filter, such as the order, stays as it is; the first page is shown.
  const kept = [...query].filter(([name]) => name !== "page" && !offered.some((one) => one.name === name));
  const chips = active.map(({ name, label, example }) => {
    const value = example === undefined ? "" : html`: ${named(query.get(name) ?? "", 32)}`;
    return html`<a class="chip" href="${address(request, { [name]: undefined, page: undefined })}"><span class="hidden">Remove the filter </span>${label}${value} <span aria-hidden="true">✕</span></a>`;
  });
  const none = Object.fromEntries(offered.map(({ name }) => [name, undefined]));
  const cleared = address(request, { ...none, state: undefined, page: undefined });
  return html`<form class="filters" method="get" action="${path}" role="search">${kept.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}${fields}<button>Filter</button></form>${problem === undefined ? "" : html`<p class="problem" role="alert">${problem}</p>`}
${active.length === 0 ? "" : html`<p class="chips">${chips} <a href="${cleared}">Clear filters</a></p>`}`;
}

/** One state that a list may show alone, and how many of its rows have it. */
export interface Tab {
  /** @default - all states */
  readonly state?: string;
  readonly label: string;
  readonly count: number;
}

/** Links to the states of a list. */
export function tabs(request: PageRequest, offered: readonly Tab[]): Html {
  const current = offered.find(({ state }) => state === (request.query.get("state") ?? undefined));
  const links = offered.map(
    (tab) =>
      html`<a href="${address(request, { state: tab.state, page: undefined })}"${tab === (current ?? offered[0]) ? html` aria-current="true"` : ""}>${tab.label} <b>${tab.count.toLocaleString("en-US")}</b></a>`,
  );
  return html`<nav class="tabs" aria-label="States">${links}</nav>`;
}
