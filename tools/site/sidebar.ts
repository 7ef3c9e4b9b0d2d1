// The site's navigation: the lists of docs/README.md, in the order in which people ask.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { docs, pages } from "./links.ts";

/** An item of the navigation, as VitePress takes it. */
export interface SidebarItem {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly SidebarItem[];
}

/** A group for each heading of the page, an item for each line of its list, and below it that line's other links. */
export function sidebar(page: string = readFileSync(join(docs, "README.md"), "utf8")): SidebarItem[] {
  const [, ...parts] = page.split(/^## /m);
  const groups = parts.map((part) => {
    const [text = "", ...lines] = part.split("\n");
    const items = lines.filter((line) => line.startsWith("- [")).map((line) => itemOf(line, page));
    return { text, items };
  });
  return [...groups.filter(({ items }) => items.length > 0), apiGroup()];
}

function itemOf(row: string, page: string): SidebarItem {
  const [first, ...others] = linksIn(row, page);
  if (first === undefined) throw new Error(`docs/README.md has a line without a link: ${row}`);
  return others.length === 0 ? first : { ...first, collapsed: true, items: others };
}

function linksIn(row: string, page: string): SidebarItem[] {
  return [...row.matchAll(/\[([^\]]+)\](?:\(([^)]+)\)|\[([^\]]+)\])/g)].map(
    ([, text = "", target, name = ""]) => {
      const path = target ?? new RegExp(`^\\[${name}\\]: (\\S+)$`, "m").exec(page)?.[1] ?? "";
      return { text: text.replaceAll("`", ""), link: linkTo(path) };
    },
  );
}

function linkTo(path: string): string {
  return `/${path.replace(/README\.md/, "").replace(/\.md/, "")}`;
}

/** The reference's pages, which are there once it has been made. */
function apiGroup(): SidebarItem {
  const items = JSON.parse(readFileSync(join(pages, "api/entries.json"), "utf8")) as SidebarItem[];
  return { text: "API reference", items };
}
