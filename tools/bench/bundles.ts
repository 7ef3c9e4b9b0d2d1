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

/** What one part of the packages costs a bundle. */
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

/** A file counts for the first part that its path matches. */
const parts: readonly (readonly [part: string, path: RegExp])[] = [
  ["client: protocol and time", /client\/src\/(protocol|time)\/|client\/src\/retry/],
  ["client: the light store", /client\/src\/light\//],
  ["client: DynamoDB and its errors", /client\/src\/(dynamodb\/|attribute-values)/],
  ["client: expressions, schema, records", /client\/src\/(expressions|schema|record)/],
  ["client: fairness", /client\/src\/fair\//],
  ["client: LeaseClient and Lease", /client\/src\/(client|lease|owner|oversight)/],
  ["client: checks of options", /client\/src\/(options-check|validation)/],
  ["client: errors", /client\/src\/errors/],
  ["client: events, metrics, environment", /client\/src\/(events|metrics|environment)/],
  ["client: fencing and handles", /client\/src\/(fencing|handle)/],
  [
    "middy: entrance, hold, signal",
    /middy\/src\/(guard|attempts|entrance|hold|completion|heartbeat|signal|shutdown|streams)/,
  ],
  ["middy: checks of options and events", /middy\/src\/(options|settings|invocation|trigger)/],
  ["middy: hooks", /middy\/src\//],
  ["aws4", /node_modules\/aws4\//],
  ["the rest", /./],
];

/** Sums up what a bundle holds of this repository by its parts. */
export function partsOf({ ownBytes }: Bundle): PartCost[] {
  const costs = new Map<string, number>();
  for (const [path, bytes] of ownBytes) {
    const part = parts.find(([, pattern]) => pattern.test(path))?.[0] ?? "";
    costs.set(part, (costs.get(part) ?? 0) + bytes);
  }
  return parts.flatMap(([part]) => {
    const bytes = costs.get(part) ?? 0;
    return bytes === 0 ? [] : [{ part, bytes }];
  });
}
