/**
 * Bundles the handler of LeaseWakeup into a module of the package: `npm run bundle`.
 *
 * The bundle is text in a source file, so that it is there in every format and for every bundler, from the sources and
 * in the published package, without looking for a file. A test tells when it is out of date.
 */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Where the bundle is kept. */
export const bundleFile: string = fileURLToPath(
  new URL("../src/workflow/wake-handler-bundle.ts", import.meta.url),
);

/** Gives the source file that has the bundle in it. */
export async function bundleSource(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("handler.ts", import.meta.url))],
    bundle: true,
    write: false,
    minify: true,
    platform: "node",
    target: "node22",
    // CommonJS finds the runtime's own SDK by NODE_PATH. With the SDK inside the bundle would be a hundred times as large.
    format: "cjs",
    external: ["@aws-sdk/*"],
    conditions: ["leasehold-source", "module"],
    legalComments: "none",
  });
  const code = outputFiles[0]?.text.trim() ?? "";
  return (
    "/** The handler of LeaseWakeup for AWS Lambda, in CommonJS. Made by `npm run bundle`: not to be edited. */\n" +
    `export const wakeHandlerBundle: string = ${JSON.stringify(code)};\n`
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(bundleFile, await bundleSource());
