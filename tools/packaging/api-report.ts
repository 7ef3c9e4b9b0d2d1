// One page for each package with what can be imported, as its declarations say it. A test compares the pages.
import { glob, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type TypeScript from "../../test/oldest-typescript/node_modules/typescript/lib/typescript.js";
import { apiIndex, indexPage } from "./api-index.ts";
import { build } from "./pack.ts";
import { repositoryFolder } from "./prepare.ts";
import { type PackageApi, publicApis, ts } from "./public-api.ts";

/** Where the reports are, relative to the repository. */
export const reportFolder = "tools/packaging/api";

/** The reports by their files' names. */
export function apiReports(packages: readonly PackageApi[]): ReadonlyMap<string, string> {
  return new Map(packages.map((each) => [`${each.folder}.api.md`, reportOf(each)]));
}

/** Builds the packages, writes the reports and the index, and removes the reports of packages that are no more. */
export async function writeApiReports(): Promise<void> {
  await build();
  const folder = join(repositoryFolder, reportFolder);
  await mkdir(folder, { recursive: true });
  const packages = await publicApis();
  const reports = apiReports(packages);
  for await (const file of glob("*.api.md", { cwd: folder }))
    if (!reports.has(file)) await rm(join(folder, file));
  for (const [file, text] of reports) await writeFile(join(folder, file), text);
  await writeFile(join(repositoryFolder, indexPage), apiIndex(packages));
}

function reportOf({ name, program, entries }: PackageApi): string {
  const printer = new DeclarationPrinter(program.getTypeChecker());
  const own = new Set(entries.flatMap(({ exported }) => exported.map(({ symbol }) => symbol)));
  const sections = entries.map(({ specifier, exported }) => {
    const texts = exported.map((each) => printer.print(each.name, each.symbol));
    return section(specifier, texts);
  });
  const reached = printer.reachedFrom(own).map((symbol) => printer.print(symbol.name, symbol));
  if (reached.length > 0) sections.push(section("Not exported, and named by what is", reached));
  const head = `# ${name}\n\nWhat can be imported, from the built declarations. Made by \`npm run generate -- api\`; do not edit.\n`;
  return `${head}\n${sections.join("\n")}`;
}

function section(title: string, texts: readonly string[]): string {
  return `## ${title}\n\n\`\`\`ts\n${[...texts].sort().join("\n\n")}\n\`\`\`\n`;
}

/** Prints declarations without comments and without what is marked as internal. */
class DeclarationPrinter {
  readonly #checker: TypeScript.TypeChecker;
  readonly #printer = ts.createPrinter({ removeComments: true });
  readonly #cleaned = new Map<TypeScript.Declaration, TypeScript.Node>();

  constructor(checker: TypeScript.TypeChecker) {
    this.#checker = checker;
  }

  print(name: string, symbol: TypeScript.Symbol): string {
    if (declarationsOf(symbol).length === 0) return `${name}: of another package`;
    const texts = declarationsOf(symbol).map((declaration) => {
      const text = this.#printer.printNode(
        ts.EmitHint.Unspecified,
        this.#clean(declaration),
        declaration.getSourceFile(),
      );
      const keyword = ts.isVariableDeclaration(declaration) ? "declare const " : "";
      return `${keyword}${text.replace(/^export /, "")}`.replace(/^declare /, "");
    });
    return [...(name === symbol.name ? [] : [`// exported as ${name}`]), ...texts].join("\n");
  }

  /** What these symbols' declarations name, and what that names in turn, in the same package; without themselves. */
  reachedFrom(symbols: ReadonlySet<TypeScript.Symbol>): readonly TypeScript.Symbol[] {
    const seen = new Set(symbols);
    for (const symbol of seen) {
      for (const declaration of declarationsOf(symbol)) this.#collect(declaration, seen);
    }
    return [...seen].filter((symbol) => !symbols.has(symbol));
  }

  #collect(node: TypeScript.Node, seen: Set<TypeScript.Symbol>): void {
    if (isInternal(node)) return;
    if (ts.isIdentifier(node)) {
      const found = this.#checker.getSymbolAtLocation(node);
      const symbol =
        found && found.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(found) : found;
      const isOfModule = symbol?.declarations?.some((each) => isOfFile(each)) ?? false;
      if (symbol !== undefined && isOfModule) seen.add(symbol);
    }
    ts.forEachChild(node, (child) => this.#collect(child, seen));
  }

  #clean(declaration: TypeScript.Declaration): TypeScript.Node {
    const known = this.#cleaned.get(declaration);
    if (known !== undefined) return known;
    const result = ts.transform(declaration as TypeScript.Node, [
      (context) => (root) => {
        const visit = (node: TypeScript.Node): TypeScript.Node | undefined =>
          isInternal(node) && node !== declaration ? undefined : ts.visitEachChild(node, visit, context);
        return ts.visitEachChild(root, visit, context);
      },
    ]);
    const cleaned = result.transformed[0] as TypeScript.Node;
    this.#cleaned.set(declaration, cleaned);
    return cleaned;
  }
}

function declarationsOf(symbol: TypeScript.Symbol): readonly TypeScript.Declaration[] {
  return symbol.declarations ?? [];
}

/** Whether it stands in a file by itself: no member, no parameter, no type parameter. */
function isOfFile(declaration: TypeScript.Declaration): boolean {
  const holder = ts.isVariableDeclaration(declaration)
    ? declaration.parent.parent.parent
    : declaration.parent;
  return ts.isSourceFile(holder);
}

function isInternal(node: TypeScript.Node): boolean {
  return ts.getJSDocTags(node).some(({ tagName }) => tagName.text === "internal");
}
