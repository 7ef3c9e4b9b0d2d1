// Links of the pages, on the site: to the same page there, or to GitHub for what is no page of the docs.
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path/posix";
import { repository, sourceUrl } from "./places.ts";

/**
 * What a link of a page leads to on the site. `page` and `href` are as in `docs/`, with `/` between folders.
 *
 * Throws for a link out of the docs to a file that is not there. Links to pages that are not there fail the build.
 */
export function siteLink(page: string, href: string): string {
  if (/^[a-z]+:|^[#/]/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const hash = anchor === undefined ? "" : `#${anchor}`;
  const target = join("docs", dirname(page), path);
  const inDocs = relative("docs", target);
  if (!inDocs.startsWith("..")) {
    if (/\.\w+$/.test(path)) return href.replace(/README\.md(?=#|$)/, "index.md");
    return `${path.replace(/\/$/, "")}/index.md${hash}`;
  }
  if (target === "packages/README.md") return "/api/";
  const file = join(repository.replaceAll("\\", "/"), target);
  if (!existsSync(file)) throw new Error(`docs/${page} links to ${href}, and there is no ${target}`);
  const kind = statSync(file).isDirectory() ? "tree" : "blob";
  return `${sourceUrl}/${kind}/main/${target}${hash}`;
}
