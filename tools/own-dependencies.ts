/**
 * Dependencies of programs that few people run: a folder of its own with a manifest and a lock file, which are installed
 * when the program is first used. `npm install` at the root does not bring them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));

/** The folders, from the repository's. */
export const ownFolders = [
  "tools/site",
  "tools/packaging/jsii",
  "test/mutation",
  "test/oldest-node",
  "test/oldest-sdk",
  "test/oldest-cdk",
] as const;

export type OwnFolder = (typeof ownFolders)[number];

/** Installs what a folder's lock file names, unless that is there already. It needs the network once. */
export async function installOwn(folder: OwnFolder): Promise<void> {
  const path = join(repository, folder);
  const locked = await readFile(join(path, "package-lock.json"), "utf8");
  const installed = join(path, "node_modules", ".installed-lock.json");
  // Ignored: nothing is installed yet.
  if ((await readFile(installed, "utf8").catch(() => undefined)) === locked) return;
  console.error(`npm ci in ${folder}, once`);
  const code = await ended("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], path);
  if (code !== 0) throw new Error(`npm ci in ${folder} ended with ${code}: it needs the network once`);
  await writeFile(installed, locked);
}

/** A program with dependencies of its own; it gets the arguments of this process, and gives it its exit code. */
export async function runOwn(
  folder: OwnFolder,
  file = "main.ts",
  args = process.argv.slice(2),
): Promise<void> {
  await installOwn(folder);
  const options = ["--conditions=leasehold-source", "--import", "tsx"];
  process.exitCode = await ended(process.execPath, [...options, file, ...args], join(repository, folder));
}

/** Its exit code. An interrupt from the terminal reaches the child too, which ends as it sees fit. */
async function ended(command: string, args: readonly string[], cwd: string): Promise<number> {
  const waitForIt = (): void => {};
  process.on("SIGINT", waitForIt);
  // npm is a script on Windows, which needs the shell.
  const child = spawn(command, args, {
    cwd,
    stdio: "inherit",
    shell: command === "npm" && process.platform === "win32",
  });
  const [code] = (await once(child, "exit")) as [number | null];
  process.off("SIGINT", waitForIt);
  return code ?? 1;
}
