/**
 * Bundles the handlers of LeaseWakeup and of a table's history into modules of the package:
 * `npm run generate -- bundle`.
 *
 * Each bundle is text in a source file. So every format and every bundler has it, from the sources and in the published
 * package, without a search for a file. A test fails when a bundle is out of date.
 */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** A handler in the package. */
export interface BundledHandler {
  /** The file of the bundle. */
  readonly file: string;
  readonly entry: string;
  readonly name: string;
  /** The construct that uses the handler. */
  readonly of: string;
}

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const bundledHandlers: readonly BundledHandler[] = [
  {
    file: pathOf("../src/workflow/wake-handler-bundle.ts"),
    entry: pathOf("handler.ts"),
    name: "wakeHandlerBundle",
    of: "LeaseWakeup",
  },
  {
    file: pathOf("../src/table/history-handler-bundle.ts"),
    entry: pathOf("../history/handler.ts"),
    name: "historyHandlerBundle",
    of: "LeaseHistory",
  },
];

/** Returns the source file with a bundle. */
export async function bundleSource({ entry, name, of }: BundledHandler): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    minify: true,
    platform: "node",
    target: "node22",
    // CommonJS finds the runtime's own SDK by NODE_PATH. With the SDK inside, the bundle would be a hundred times as
    // large.
    format: "cjs",
    external: ["@aws-sdk/*"],
    conditions: ["leasehold-source", "module"],
    legalComments: "none",
  });
  const code = outputFiles[0]?.text.trim() ?? "";
  return (
    `/** The handler of ${of} for AWS Lambda, in CommonJS. Made by \`npm run generate -- bundle\`: not to be edited. */\n` +
    `export const ${name}: string = ${JSON.stringify(code)};\n`
  );
}

/** Writes the source files of all bundles. */
export async function writeBundles(): Promise<void> {
  for (const handler of bundledHandlers) await writeFile(handler.file, await bundleSource(handler));
}
