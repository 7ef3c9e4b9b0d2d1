// What users of a package can import, as the compiler sees its declarations.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import type TypeScript from "../../test/oldest-typescript/node_modules/typescript/lib/typescript.js";
import { declarationsIn, type Manifest, publishedManifest, type RepositoryManifest } from "./manifest.ts";
import { publishedPackages, repositoryFolder } from "./prepare.ts";

/** TypeScript 7 has no interface for programs; the oldest compiler that the declarations support has one. */
export const ts = createRequire(join(repositoryFolder, "test/oldest-typescript/package.json"))(
  "typescript",
) as typeof TypeScript;

/** An entry that may change in any version. */
const internalEntry = "./internal";

/** What users can import from a published package, as the compiler sees it. */
export interface PackageApi {
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
