// A page with a line for each name that users can import: what it is, from its docstring, and a link to its source.
import type TypeScript from "../../test/oldest-typescript/node_modules/typescript/lib/typescript.js";
import type { PackageApi } from "./public-api.ts";

/** Where the page is, relative to the repository. */
export const indexPage = "packages/README.md";

/** The page. Throws for a name whose declaration has no docstring. */
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
