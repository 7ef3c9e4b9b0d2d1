/** Links between pages: the file is there, and so is the heading. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { slug } from "../../tools/site/links.ts";

const root = join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "docs/**/*.md", "packages/*/README.md", "tools/*/README.md"], { cwd: root });

/** The anchors that GitHub gives to a page's headings; the second of one name has "-1" after it, and so on. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of withoutCode(readFileSync(page, "utf8")).matchAll(/^#+ (.+)$/gm)) {
    const anchor = slug(heading.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1"));
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, "");
}

function brokenIn(page: string): string[] {
  const file = join(root, page);
  const links = withoutCode(readFileSync(file, "utf8")).matchAll(/\]\((?<target>[^)\s]+)\)/g);
  return [...links].flatMap(({ groups }) => {
    const target = groups?.target ?? "";
    if (/^[a-z]+:/.test(target)) return [];
    const [path = "", anchor] = target.split("#");
    const linked = path === "" ? file : resolve(dirname(file), path);
    const isThere = existsSync(linked) && (anchor === undefined || anchorsOf(linked).has(anchor));
    return isThere ? [] : [`${page}: ${target} (${relative(root, linked)})`];
  });
}

test("every link of every page leads to a file and a heading that exist", () => {
  expect(pages.flatMap(brokenIn)).toEqual([]);
  expect(pages.length).toBeGreaterThan(40);
});
