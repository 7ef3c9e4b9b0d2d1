// @module-tag long
// The docs as a site: every page is there, its links lead somewhere, it can be searched, and it asks no other host for anything.
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dirname as folderOf, join as joinUrl } from "node:path/posix";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const site = join(root, "tools/site/dist");
const files = (pattern: string): string[] =>
  globSync(pattern, { cwd: site }).map((file) => file.replaceAll("\\", "/"));
const textOf = (file: string): string => readFileSync(join(site, file), "utf8");

beforeAll(async () => {
  await promisify(execFile)("npm", ["run", "docs"], { cwd: root });
  // A minute on an idle machine.
}, 900_000);

it("is made by sources that have the types that they say", async () => {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const args = [compiler, "-p", join(root, "tools/site/tsconfig.types.json")];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe("");
});

it("has every page of the docs, and the reference of every entry", () => {
  const pages = globSync("**/*.md", { cwd: join(root, "docs") });
  expect(pages.length).toBeGreaterThan(30);
  const expected = pages.map((page) =>
    page.replaceAll("\\", "/").replace(/(README)?\.md$/, (end) => (end === ".md" ? ".html" : "index.html")),
  );
  expect(files("**/*.html")).toEqual(expect.arrayContaining(expected));
  expect(textOf("api/client.html")).toContain("tryAcquire");
  expect(textOf("api/index.html").match(/<li><a href="[./\w-]+#[\w-]+"><code>/g)?.length).toBeGreaterThan(
    300,
  );
  expect(textOf("api/client-fair.html")).toContain("@leasehold/client/fair");
});

it("begins with a front page: the promise, the installation, code, a picture, and who it is for", () => {
  const front = textOf("index.html");
  for (const part of [
    "One process",
    "@leasehold/client @aws-sdk/client-dynamodb",
    "withLease",
    "It is not for you if",
  ])
    expect(front.replace(/<[^>]+>/g, "")).toContain(part);
  expect(front).toMatch(/<img [^>]*alt="A freezes/);
  expect(front.match(/<h1/g)).toHaveLength(1);
});

it("leads from every link to a page that is there, and to a heading on it", () => {
  const idsOf = new Map(
    files("**/*.html").map((file) => {
      const ids = [...textOf(file).matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id);
      return [file, new Set(ids)] as const;
    }),
  );
  const broken = [...idsOf.keys()].flatMap((file) =>
    [...textOf(file).matchAll(/<a [^>]*href="([^"]+)"/g)].flatMap(([, href = ""]) => {
      if (/^[a-z]+:/.test(href)) return [];
      const [path = "", hash] = href.split("#");
      const target =
        path === "" ? file : path.startsWith("/") ? path.slice(1) : joinUrl(folderOf(file), path);
      const page = [target, `${target}.html`, joinUrl(target, "index.html")].find((each) => idsOf.has(each));
      const isThere = page !== undefined && (!hash || idsOf.get(page)?.has(decodeURIComponent(hash)));
      return isThere ? [] : [`${file}: ${href}`];
    }),
  );
  expect(broken).toEqual([]);
});

it("can be searched, in the docs and in the reference", () => {
  const [index = ""] = files("assets/chunks/@localSearchIndex*.js");
  const text = textOf(index);
  for (const word of ["tombstone", "dynamodb-lock-client", "tryAcquire"])
    expect(text.toLowerCase()).toContain(word.toLowerCase());
});

it("asks no other host for scripts, styles, fonts, pictures or data", () => {
  for (const file of files("**/*.html")) {
    expect(textOf(file), file).not.toMatch(/<(script|img|iframe|source|video)\b[^>]*\ssrc="(https?:)?\/\//);
    expect(textOf(file), file).not.toMatch(/<link\b[^>]*\shref="(https?:)?\/\//);
  }
  for (const file of files("**/*.css"))
    expect(textOf(file), file).not.toMatch(/(url\(|@import )["']?(https?:)?\/\//);
  for (const file of files("assets/{chunks/theme,chunks/framework,app}.*.js")) {
    expect(textOf(file), file).not.toMatch(
      /(fetch|import|open|Worker|WebSocket|EventSource)\(["'`](https?|wss?):/,
    );
  }
});
