import { build } from "esbuild";

/** A program in one file. */
export interface Bundled {
  readonly code: Uint8Array;
  /** Every file that was read for it, also those of which nothing is left. */
  readonly files: readonly string[];
  /** What it holds, with the bytes of each file. */
  readonly bytesOf: ReadonlyMap<string, number>;
  /** What it loads from outside. */
  readonly loads: readonly string[];
}

/** Bundles a program as functions are deployed: minified, from the sources; what is `external` stays outside. */
export async function bundled(
  program: string,
  {
    format = "esm",
    external = [],
    banner = "",
  }: {
    readonly format?: "esm" | "cjs";
    readonly external?: readonly string[];
    /** What stands at its beginning. */
    readonly banner?: string;
  } = {},
): Promise<Bundled> {
  const { metafile, outputFiles } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname, loader: "ts" },
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    platform: "node",
    target: "node22",
    format,
    mainFields: ["module", "main"],
    conditions: ["leasehold-source", "module"],
    external: [...external],
    banner: { js: banner },
    logLevel: "error",
  });
  const [output] = Object.values(metafile.outputs);
  const held = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return {
    code: outputFiles[0]?.contents ?? new Uint8Array(),
    files: Object.keys(metafile.inputs),
    bytesOf: new Map(held.map(([path, { bytesInOutput }]) => [path, bytesInOutput])),
    loads: output?.imports.map(({ path }) => path) ?? [],
  };
}
