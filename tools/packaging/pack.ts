import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtempDisposable, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { prepare, publishedPackages, repositoryFolder } from "./prepare.ts";
import { versionProblems } from "./version.ts";

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

/** Copies a package that has been built to another folder, as it is published. */
export async function copyPrepared(name: string, copy: string): Promise<void> {
  const isPart = (path: string): boolean => !path.endsWith("node_modules");
  await cp(join(repositoryFolder, "packages", name), copy, { recursive: true, filter: isPart });
  await prepare(copy, name);
}

/**
 * Packs every published package as `npm publish` does, and gives the archives' paths by the packages' names.
 *
 * It works on copies, so that a test that runs meanwhile sees the repository's own manifests.
 */
export async function packAll(destination: string): Promise<ReadonlyMap<string, string>> {
  await build();
  await mkdir(destination, { recursive: true });
  await using copies = await mkdtempDisposable(join(tmpdir(), "leasehold-pack-"));
  const archives = new Map<string, string>();
  for (const name of await publishedPackages()) {
    const copy = join(copies.path, name);
    await copyPrepared(name, copy);
    const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", destination];
    const { stdout } = await npm(args, copy);
    const [packed] = JSON.parse(stdout) as readonly { readonly name: string; readonly filename: string }[];
    if (packed === undefined) throw new Error(`npm packed nothing of ${name}: ${stdout}`);
    archives.set(packed.name, join(destination, packed.filename));
  }
  const sums = [...archives.values()].map(
    async (archive) => `${await sumOf(archive)}  ${basename(archive)}\n`,
  );
  await writeFile(join(destination, sumsFile), (await Promise.all(sums)).join(""));
  return archives;
}

/** Gives the archives that {@link packAll} has written into a folder. Rejects where one of them is another by now. */
export async function archivesIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const lines = (await readFile(join(folder, sumsFile), "utf8")).trim().split("\n");
  const archives = new Map<string, string>();
  for (const [sum, file = ""] of lines.map((line) => line.split("  "))) {
    const archive = join(folder, file);
    if ((await sumOf(archive)) !== sum) throw new Error(`${archive} is not the archive that was packed`);
    const { stdout } = await run("tar", ["-xzOf", archive, "package/package.json"]);
    archives.set((JSON.parse(stdout) as { readonly name: string }).name, archive);
  }
  return archives;
}

/** Names the archives with their hashes, in the order in which they depend on each other; sha256sum(1) reads it. */
const sumsFile = "SHA256SUMS";

async function sumOf(archive: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(archive))
    .digest("hex");
}

/** What npm said of one package. */
interface Published {
  readonly name: string;
  /** npm's warnings, without those on a user's own settings, and on somebody who is not logged in. */
  readonly warnings: readonly string[];
}

/**
 * Shows that the packages could be published. The workflow "release" publishes them: it alone has the right to do so.
 *
 * Does all that npm does before it sends anything, with the archives in a folder; without one, with those of now. Rejects
 * where the versions disagree, and where npm refuses a package.
 */
export async function checkPublishing(folder?: string): Promise<readonly Published[]> {
  const problems = await versionProblems();
  if (problems.length > 0) throw new Error(`this cannot be published:\n${problems.join("\n")}`);
  await using packed = await mkdtempDisposable(join(tmpdir(), "leasehold-publish-"));
  const published: Published[] = [];
  for (const [name, archive] of await (folder === undefined ? packAll(packed.path) : archivesIn(folder))) {
    const args = ["publish", archive, "--ignore-scripts", "--dry-run"];
    const { stderr } = await npm(args, repositoryFolder);
    const lines = stderr.split("\n").filter((line) => /^npm warn /i.test(line));
    const own = /unknown (user|env|cli) config|requires you to be logged in .*\(dry-run\)/i;
    const warnings = lines.filter((line) => !own.test(line));
    published.push({ name, warnings });
  }
  return published;
}
