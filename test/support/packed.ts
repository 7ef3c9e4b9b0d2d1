import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { installOwn } from "../../tools/own-dependencies.ts";
import type { Manifest } from "../../tools/packaging/manifest.ts";
import { archivesIn, packAll } from "../../tools/packaging/pack.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** The packages as `npm install` leaves them in a project of their users, outside the repository. */
export interface PackedProject {
  readonly folder: string;
  readonly manifests: readonly Manifest[];
  /** The archives' paths by the packages' names. */
  readonly archives: ReadonlyMap<string, string>;
  /** Every specifier that users can import, but for the manifests. */
  readonly entryPoints: readonly string[];
  /** Where an installed package is. */
  folderOf(name: string): string;
  remove(): Promise<void>;
}

/**
 * The archives' paths by the packages' names: those in the folder that TARBALLS names, for long tests share them, and a release
 * tests the very archives that it publishes. Without one it packs them into `destination`.
 */
export async function packedArchives(destination: string): Promise<ReadonlyMap<string, string>> {
  const { TARBALLS: packed } = process.env;
  return packed ? await archivesIn(resolve(packed)) : await packAll(destination);
}

/**
 * Packs the packages and unpacks them into the `node_modules` of a new folder. What they depend on, and what is named
 * here beside it, is linked from the repository, so that nothing is downloaded.
 */
export async function installPacked(beside: readonly string[] = []): Promise<PackedProject> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-packed-"));
  const archives = await packedArchives(join(folder, "archives"));
  const folderOf = (name: string): string => join(folder, "node_modules", name);
  const manifests: Manifest[] = [];
  for (const [name, archive] of archives) {
    await mkdir(folderOf(name), { recursive: true });
    await run("tar", ["-xzf", archive, "-C", folderOf(name), "--strip-components=1"]);
    manifests.push(JSON.parse(await readFile(join(folderOf(name), "package.json"), "utf8")) as Manifest);
  }
  const needed = manifests.flatMap(({ dependencies, optionalDependencies, peerDependencies }) =>
    Object.keys({ ...(dependencies ?? {}), ...(optionalDependencies ?? {}), ...(peerDependencies ?? {}) }),
  );
  for (const name of new Set([...needed.filter((each) => !archives.has(each)), ...beside])) {
    await mkdir(dirname(folderOf(name)), { recursive: true });
    await symlink(join(root, "node_modules", name), folderOf(name));
  }
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true }));
  const entryPoints = manifests.flatMap(({ name, exports }) =>
    Object.keys(exports)
      .filter((entry) => entry !== "./package.json")
      .map((entry) => join(name, entry)),
  );
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  return { folder, manifests, archives, entryPoints, folderOf, remove };
}

const oldest = ["test/oldest-node", "test/oldest-sdk", "test/oldest-cdk"] as const;

/** Installs the oldest versions that the packages support. They lie apart, so that they hide no other. */
export async function installOldest(): Promise<void> {
  for (const folder of oldest) await installOwn(folder);
}

/** The binary of the oldest Node that the packages support. */
export const oldestNode: string = join(root, "test/oldest-node/node_modules/node/bin/node");

/** Where the oldest AWS SDK that the packages support is. */
export const oldestSdk: string = join(root, "test/oldest-sdk/node_modules/@aws-sdk/client-dynamodb");

/** Where the oldest AWS CDK that the constructs support is, by the names of its packages. */
export const oldestCdk: ReadonlyMap<string, string> = new Map(
  ["aws-cdk-lib", "constructs"].map((name) => [name, join(root, "test/oldest-cdk/node_modules", name)]),
);

/** The oldest TypeScript that the packages' types support, as a script for Node. */
export function oldestTypeScript(): string {
  const from = createRequire(join(root, "test/oldest-typescript/package.json"));
  return from.resolve("typescript/bin/tsc");
}
