// The API reference: a page for each entry that users can import, from the docstrings.
import { readFileSync } from "node:fs";
import { glob, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Application, Converter, ReflectionKind } from "typedoc";
import { repository, slug } from "./links.ts";
import type { SidebarItem } from "./sidebar.ts";

/** An entry of a package: what users import, the source behind it, and its page. */
interface Entry {
  readonly specifier: string;
  readonly source: string;
  readonly page: string;
}

async function entries(): Promise<Entry[]> {
  const found: Entry[] = [];
  for await (const file of glob("packages/*/package.json", { cwd: repository })) {
    const manifest = JSON.parse(readFileSync(join(repository, file), "utf8")) as {
      readonly name: string;
      readonly exports: Readonly<Record<string, { readonly "leasehold-source"?: string }>>;
    };
    for (const [entry, conditions] of Object.entries(manifest.exports)) {
      const source = conditions["leasehold-source"];
      // What is internal may change in any version, and is nobody's reference.
      if (source === undefined || entry === "./internal") continue;
      const specifier = `${manifest.name}${entry.slice(1)}`;
      const page = specifier.replace("@leasehold/", "").replaceAll("/", "-");
      found.push({ specifier, source: join(repository, file, "..", source), page });
    }
  }
  return found.sort((a, b) => a.specifier.localeCompare(b.specifier));
}

/** Writes the reference into a folder, and `entries.json` for the navigation. Rejects where TypeDoc finds an error. */
export async function writeReference(folder: string): Promise<void> {
  const all = await entries();
  const pageOf = new Map(all.map(({ source, page }) => [source, page]));
  const app = await Application.bootstrapWithPlugins({
    plugin: ["typedoc-plugin-markdown"],
    entryPoints: all.map(({ source }) => source),
    tsconfig: join(repository, "tsconfig.json"),
    // The sources are checked by another compiler; here they are read.
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    excludeProtected: true,
    readme: "none",
    name: "API reference",
    outputs: [{ name: "markdown", path: folder }],
    disableSources: true,
    hideGenerator: true,
    logLevel: "Warn",
    validation: { notExported: false, invalidLink: true, invalidPath: true },
    ...{
      outputFileStrategy: "modules",
      hidePageHeader: true,
      hideBreadcrumbs: true,
      useCodeBlocks: true,
      expandObjects: true,
    },
    ...{ parametersFormat: "table", interfacePropertiesFormat: "table", classPropertiesFormat: "table" },
  });
  // TypeDoc calls a module by its file.
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    for (const module of context.project.getReflectionsByKind(ReflectionKind.Module)) {
      const file = context.project.getSymbolIdFromReflection(module)?.fileName ?? "";
      const page = pageOf.get(file.replaceAll("\\", "/"));
      if (page !== undefined) module.name = page;
    }
  });
  const project = await app.convert();
  if (project === undefined) throw new Error("TypeDoc could not read the packages");
  await app.generateOutputs(project);
  await rm(join(folder, "README.md"));
  const texts = new Map<string, string>();
  for (const { page } of all) texts.set(page, await readFile(join(folder, `${page}.md`), "utf8"));
  for (const { page, specifier } of all) {
    const text = withRightAnchors(page, texts).replace(/^# .*$/m, `# ${specifier}`);
    await writeFile(join(folder, `${page}.md`), text);
  }
  await writeFile(join(folder, "index.md"), indexOf(all, texts));
  const items: SidebarItem[] = all.map(({ page, specifier }) => ({
    text: specifier.replace("@leasehold/", ""),
    link: `/api/${page}`,
  }));
  await writeFile(join(folder, "entries.json"), JSON.stringify(items));
}

/** The index of names, whose links lead to the reference in place of the sources. Throws for a name that is not there. */
function indexOf(all: readonly Entry[], texts: ReadonlyMap<string, string>): string {
  const [, ...sections] = readFileSync(join(repository, "packages/README.md"), "utf8").split(/^## /m);
  const linked = sections.map((section) => {
    const [specifier = "", ...rows] = section.split("\n");
    const page = all.find((entry) => entry.specifier === specifier)?.page ?? "";
    const headings = texts.get(page)?.match(/^### .+$/gm) ?? [];
    const toReference = (_link: string, name: string): string => {
      const heading = headings.find((each) => new RegExp(`^### (\`abstract\` )?${name}\\b`).test(each));
      if (heading === undefined) throw new Error(`The reference of ${specifier} has no ${name}`);
      return `[\`${name}\`](${page}.md#${slug(heading.slice("### ".length))})`;
    };
    return `[${specifier}](${page}.md)\n${rows.join("\n").replace(/\[`(\w+)`\]\([^)]+\)/g, toReference)}`;
  });
  return ["# API index\n\nEach name that can be imported.\n\n", ...linked].join("## ");
}

/** TypeDoc numbers the anchors of some headings whose names differ in their case alone; the pages have them unnumbered. */
function withRightAnchors(page: string, texts: ReadonlyMap<string, string>): string {
  const text = texts.get(page) ?? "";
  return text.replace(
    /\]\((?:([\w-]+)\.md)?#([\w-]+)-\d+\)/g,
    (link, target: string | undefined, anchor: string) => {
      const headings = (texts.get(target ?? page) ?? "").match(/^#+ .+$/gm) ?? [];
      const count = headings.filter((heading) => slug(heading.replace(/^#+ /, "")) === anchor).length;
      return count === 1 ? link.replace(/-\d+\)$/, ")") : link;
    },
  );
}
