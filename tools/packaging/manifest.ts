/** The condition under which this repository runs a package from its sources. */
const sourceCondition = "leasehold-source";

/** What an entry leads to, by the conditions of those who load it. */
type Conditions = Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;

/** A package's manifest, as far as packing it looks at it. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, Conditions | string>>;
  readonly [field: string]: unknown;
}

/**
 * The packages that Node loads in the caller's format. They throw errors of a peer dependency that is there in two
 * formats, and recognise its errors: so they have to load the copy of it that their caller has loaded. They hand out no
 * class of their own, and keep nothing for the process.
 */
const packagesInBothFormats: readonly string[] = ["@leasehold/durable"];

/** What the published packages have in common with the repository. */
export type RepositoryManifest = Readonly<Record<"author" | "bugs" | "homepage" | "license", unknown>> & {
  readonly repository: { readonly type: string; readonly url: string };
};

/** The files that one source file becomes, without their endings. */
interface Outputs {
  readonly commonJs: string;
  readonly esModule: string;
}

function outputsOf(entry: string, conditions: Conditions | string | undefined): Outputs {
  const source = typeof conditions === "object" ? conditions[sourceCondition] : undefined;
  const path = /^\.\/src\/(.+)\.ts$/.exec(String(source))?.[1];
  if (path === undefined) {
    throw new Error(`the entry ${entry} has ${source} as its source; allowed: ./src/<path>.ts`);
  }
  return { commonJs: `./dist/cjs/${path}`, esModule: `./dist/esm/${path}` };
}

/** The declarations of a published entry. */
export function declarationsIn({ types, require }: Conditions): string {
  return typeof require === "object" ? require.types : String(types);
}

/**
 * Makes the manifest that is published of the one that the repository works with.
 *
 * Node loads CommonJS for `import` and for `require`, so that a process has one copy of each class and each registry,
 * whatever its files are written in. Bundlers take ES modules, by the condition that they have for it, for both. There
 * is one set of declarations, CommonJS's, so that a client typed in one format is a client in the other. TypeScript's
 * old resolution (node10) knows no `exports` and reads `types` and `typesVersions`.
 *
 * A package in both formats follows its caller's, in Node and in bundlers.
 */
export function publishedManifest(
  manifest: Manifest,
  repository: RepositoryManifest,
  directory: string,
): Manifest {
  const { exports, devDependencies: _devDependencies, scripts: _scripts, ...kept } = manifest;
  const published: Record<string, Conditions | string> = {};
  const typesOfSubpaths: Record<string, readonly string[]> = {};
  const isInBoth = packagesInBothFormats.includes(manifest.name);
  for (const [entry, conditions] of Object.entries(exports)) {
    if (typeof conditions === "string") {
      published[entry] = conditions;
      continue;
    }
    const { commonJs, esModule } = outputsOf(entry, conditions);
    // In the order in which they are tried: `types` first, since TypeScript takes the first that it knows.
    const inCommonJs = { types: `${commonJs}.d.ts`, default: `${commonJs}.js` };
    const inEsModule = { types: `${esModule}.d.ts`, default: `${esModule}.js` };
    published[entry] = isInBoth
      ? { import: inEsModule, require: inCommonJs }
      : { types: inCommonJs.types, module: inEsModule.default, default: inCommonJs.default };
    if (entry !== ".") typesOfSubpaths[entry.replace("./", "")] = [`${commonJs}.d.ts`];
  }
  const main = outputsOf(".", exports["."]);
  return {
    ...kept,
    author: repository.author,
    homepage: repository.homepage,
    bugs: repository.bugs,
    license: repository.license,
    repository: { ...repository.repository, directory },
    // A release candidate is what people ask for by name, and never what `npm install` gives them.
    publishConfig: {
      access: "public",
      provenance: true,
      tag: manifest.version.includes("-") ? "next" : "latest",
    },
    type: "commonjs",
    main: `${main.commonJs}.js`,
    types: `${main.commonJs}.d.ts`,
    ...(Object.keys(typesOfSubpaths).length === 0 ? {} : { typesVersions: { "*": typesOfSubpaths } }),
    exports: { ...published, "./package.json": "./package.json" },
    files: ["dist/cjs", "dist/esm", ...(isInBoth ? [] : ["!dist/esm/**/*.d.ts"]), "src", "CHANGELOG.md"],
  };
}
