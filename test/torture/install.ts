import { join } from "node:path";
import { build } from "esbuild";
import { installPacked } from "../support/packed.ts";

/** The program of a process, from its source. */
export const worker: string = join(import.meta.dirname, "worker/main.ts");

/** A project of a user who has installed the packages, with the program that is tortured. */
export interface TorturedProject {
  /** The program of a process, for Node. */
  readonly worker: string;
  remove(): Promise<void>;
}

/**
 * Packs the packages, installs the archives in a folder of their own, and puts the workers there. They import the packages
 * as their users do: nothing of them comes from the sources.
 */
export async function installTortured(): Promise<TorturedProject> {
  const project = await installPacked(["@aws-sdk/client-dynamodb"]);
  const outfile = join(project.folder, "worker.mjs");
  await build({
    entryPoints: [worker],
    outfile,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node22",
  });
  return { worker: outfile, remove: () => project.remove() };
}
