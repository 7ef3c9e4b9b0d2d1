// What users can import, as the built declarations say it: one page for each package, and an index with a line for each name. A
// test compares the pages.
import { glob, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import type TypeScript from "../../test/oldest-typescript/node_modules/typescript/lib/typescript.js";
import { declarationsIn, type Manifest, publishedManifest, type RepositoryManifest } from "./manifest.ts";
import { build } from "./pack.ts";
import { publishedPackages, repositoryFolder } from "./prepare.ts";

/** TypeScript 7 has no interface for programs; the oldest compiler that the declarations support has one. */
const ts = createRequire(join(repositoryFolder, "test/oldest-typescript/package.json"))(
  "typescript",
) as typeof TypeScript;

/** An entry that may change in any version. */
const internalEntry = "./internal";

/** What users can import from a published package, as the compiler sees it. */
interface PackageApi {
  /** The package's folder below `packages`. */
  readonly folder: string;
  readonly name: string;
  readonly program: TypeScript.Program;
  readonly entries: readonly {
    readonly specifier: string;
    readonly exported: readonly { readonly name: string; readonly symbol: TypeScript.Symbol }[];
  }[];
}

/** Reads the published packages, which have to be built. */
export async function publicApis(): Promise<readonly PackageApi[]> {
  const repository = JSON.parse(
    await readFile(join(repositoryFolder, "package.json"), "utf8"),
  ) as RepositoryManifest;
  const packages = (await publishedPackages()).map(async (folder) => {
    const path = join(repositoryFolder, "packages", folder);
    const manifest = JSON.parse(await readFile(join(path, "package.json"), "utf8")) as Manifest;
    return publicApi(folder, path, publishedManifest(manifest, repository, ""));
  });
  return await Promise.all(packages);
}

function publicApi(folder: string, path: string, { name, exports }: Manifest): PackageApi {
  const files = Object.entries(exports).flatMap(([entry, conditions]) =>
    typeof conditions === "string" || entry === internalEntry
      ? []
      : [{ entry, file: join(path, declarationsIn(conditions)) }],
  );
  const program = declarationProgram(files.map(({ file }) => file));
  const checker = program.getTypeChecker();
  const entries = files.map(({ entry, file }) => {
    const source = program.getSourceFile(file);
    const module = source && checker.getSymbolAtLocation(source);
    if (module === undefined) throw new Error(`${file} is not there, or exports nothing: run npm run build`);
    const exported = checker.getExportsOfModule(module).map((symbol) => ({
      name: symbol.name,
      symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    }));
    return { specifier: `${name}${entry.slice(1)}`, exported };
  });
  return { folder, name, program, entries };
}

/** The declarations of one package: what it imports from other packages stays a name. */
function declarationProgram(files: readonly string[]): TypeScript.Program {
  const options: TypeScript.CompilerOptions = { noLib: true, types: [], target: ts.ScriptTarget.ES2022 };
  const host = ts.createCompilerHost(options);
  host.resolveModuleNameLiterals = (literals, containing) =>
    literals.map(({ text }) => {
      if (!text.startsWith(".")) return { resolvedModule: undefined };
      const resolvedFileName = resolve(dirname(containing), text.replace(/\.ts$/, ".d.ts"));
      return { resolvedModule: { resolvedFileName, extension: ts.Extension.Dts } };
    });
  return ts.createProgram(files, options, host);
}

/** Where the reports are, relative to the repository. */
export const reportFolder = "tools/packaging/api";

/** Where the index is, relative to the repository. */
export const indexPage = "packages/README.md";

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

/** The index: what each name is, from its docstring, and a link to its source. Throws for a name whose declaration has no docstring. */
export function apiIndex(packages: readonly PackageApi[]): string {
  const sections = packages.flatMap(({ entries }) =>
    entries.map(({ specifier, exported }) => {
      const sorted = [...exported].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
      const rows = sorted.map(({ name, symbol }) => {
        // What a package passes on from another one is declared there.
        const { text, source } = documented(symbol) ?? documentedIn(packages, name);
        return `- [\`${name}\`](${source}): ${text}`;
      });
      return `## ${specifier}\n\n${rows.join("\n")}\n`;
    }),
  );
  const head =
    "# API index\n\nEach name that can be imported. Made by `npm run generate -- api` from the docstrings; do not edit.\n";
  return `${head}\n${sections.join("\n")}`;
}

interface Documented {
  readonly text: string;
  /** The file of the declaration, from the page. */
  readonly source: string;
}

function documented(symbol: TypeScript.Symbol): Documented | undefined {
  const text = symbol
    .getDocumentationComment(undefined)
    .map((part) => part.text)
    .join("");
  const file = symbol.declarations?.[0]?.getSourceFile().fileName;
  if (text === "" || file === undefined) return undefined;
  const source = file.replace(/^.*\/packages\/(\w+)\/dist\/\w+\/(.*)\.d\.ts$/, "$1/src/$2.ts");
  return { text: firstSentence(text), source };
}

function documentedIn(packages: readonly PackageApi[], name: string): Documented {
  for (const { program } of packages) {
    for (const file of program.getSourceFiles()) {
      const symbol = program
        .getTypeChecker()
        .getSymbolAtLocation(file)
        ?.exports?.get(name as never);
      const found = symbol && documented(symbol);
      if (found !== undefined) return found;
    }
  }
  throw new Error(`${name} has no docstring`);
}

/** In one line, without its full stop. */
function firstSentence(text: string): string {
  const [paragraph = ""] = text.split(/\n\s*\n/);
  const [sentence = ""] = paragraph.replace(/\s+/g, " ").split(/\.(?= [A-Z`]|$)/);
  return sentence.replace(/\{@link ([^} ]+) ?\}/g, "`$1`");
}
