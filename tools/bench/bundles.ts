import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";

/** One handler, bundled as it is deployed. */
export interface Bundle {
  readonly name: string;
  readonly code: Uint8Array;
  readonly bytes: number;
  readonly gzipBytes: number;
  /** What each of this repository's own files, and of the light store's signer, by its path, contributes. */
  readonly ownBytes: ReadonlyMap<string, number>;
}

/** What one folder of a package costs a bundle. */
export interface PartCost {
  readonly part: string;
  readonly bytes: number;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What a bundle needs in which a CommonJS package requires modules of Node. */
const requireBanner = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

/**
 * Bundles a handler of `folder` as infra/handler.ts does, with a `require` of its own where it needs one.
 */
export async function bundle(
  name: string,
  { folder = "tools/bench/handlers", needsRequire = false }: { folder?: string; needsRequire?: boolean } = {},
): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [`${folder}/${name}.ts`],
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    target: "node24",
    format: "esm",
    minify: true,
    ...(needsRequire && { banner: { js: requireBanner } }),
    mainFields: ["module", "main"],
    conditions: ["leasehold-source", "module"],
    logLevel: "error",
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  return {
    name,
    code,
    bytes: code.length,
    gzipBytes: gzipSync(code, { level: 9 }).length,
    ownBytes: ownBytesOf(metafile),
  };
}

function ownBytesOf({ outputs }: Metafile): Map<string, number> {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  return new Map(
    inputs
      .filter(([path]) => /^(packages|node_modules\/aws4)\//.test(path))
      .map(([path, { bytesInOutput }]) => [path, bytesInOutput]),
  );
}

/** Sums up what a bundle holds of this repository by package and folder, the largest first. */
export function partsOf({ ownBytes }: Bundle): PartCost[] {
  const costs = new Map<string, number>();
  for (const [path, bytes] of ownBytes) {
    const [, name, folder] = /^packages\/([^/]+)\/src\/(?:(.+)\/)?/.exec(path) ?? [path, "aws4"];
    const part = folder === undefined ? String(name) : `${name}: ${folder}`;
    costs.set(part, (costs.get(part) ?? 0) + bytes);
  }
  return [...costs].map(([part, bytes]) => ({ part, bytes })).sort((one, other) => other.bytes - one.bytes);
}
