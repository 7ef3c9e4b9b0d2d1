import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { prepare, publishedPackages, repositoryFolder } from "./prepare.ts";

const run = promisify(execFile);

/** Builds every package, into its `dist` folder. */
export async function build(): Promise<void> {
  const compiler = join(repositoryFolder, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, "-b", "packages"], { cwd: repositoryFolder });
}

/** What npm prints. On Windows its command is a script, which only a shell runs. */
export async function npm(
  args: readonly string[],
  cwd: string,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return await run("npm", args, { cwd, shell: process.platform === "win32" });
}

/**
 * Packs every published package as `npm publish` does, and gives the archives' paths by the packages' names.
 *
 * It works on copies, so that a test that runs meanwhile sees the repository's own manifests.
 */
export async function packAll(destination: string): Promise<ReadonlyMap<string, string>> {
  await build();
  await mkdir(destination, { recursive: true });
  const copies = await mkdtemp(join(tmpdir(), "leasehold-pack-"));
  const archives = new Map<string, string>();
  try {
    for (const name of await publishedPackages()) {
      const copy = join(copies, name);
      const isPart = (path: string): boolean => !path.endsWith("node_modules");
      await cp(join(repositoryFolder, "packages", name), copy, { recursive: true, filter: isPart });
      await prepare(copy, name);
      const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", destination];
      const { stdout } = await npm(args, copy);
      const [packed] = JSON.parse(stdout) as readonly { readonly name: string; readonly filename: string }[];
      if (packed === undefined) throw new Error(`npm packed nothing of ${name}: ${stdout}`);
      archives.set(packed.name, join(destination, packed.filename));
    }
  } finally {
    await rm(copies, { recursive: true, force: true });
  }
  return archives;
}
