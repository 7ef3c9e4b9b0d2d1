// Where the site's parts are, and where the links of its pages lead: to the same page there, or to GitHub for what is no page
// of the docs.
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path/posix";
import { fileURLToPath } from "node:url";

/** The repository's folder. */
export const repository: string = fileURLToPath(new URL("../..", import.meta.url));

/** The pages as people write them. */
export const docs: string = fileURLToPath(new URL("../../docs/", import.meta.url));

/** The pages as the site is built of them: a copy of the docs, with the API reference beside them. */
export const pages: string = fileURLToPath(new URL("pages/", import.meta.url));

/** What is not in the docs is on GitHub. */
export const sourceUrl = "https://github.com/leasehold/leasehold";

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

/** The anchor of a heading, as GitHub makes it of the heading's text: links lead to the same place there and on the site. */
export function slug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}
