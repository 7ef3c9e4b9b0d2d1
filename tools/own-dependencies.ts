/**
 * Dependencies of programs that few people run: a folder of its own with a manifest and a lock file, which are installed
 * when the program is first used. `npm install` at the root does not bring them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryFolder } from "./packaging/prepare.ts";

/** The folders, from the repository's. */
export const ownFolders = [
  "tools/site",
  "tools/packaging/jsii",
  "tools/packaging/binary",
  "test/mutation",
  "test/oldest-node",
  "test/oldest-sdk",
  "test/oldest-cdk",
] as const;

export type OwnFolder = (typeof ownFolders)[number];

/** Installs what a folder's lock file names, unless that is there already. It needs the network once. */
export async function installOwn(folder: OwnFolder): Promise<void> {
  const path = join(repositoryFolder, folder);
  const locked = await readFile(join(path, "package-lock.json"), "utf8");
  const installed = join(path, "node_modules", ".installed-lock.json");
  if (existsSync(installed) && (await readFile(installed, "utf8")) === locked) return;
  console.error(`npm ci in ${folder}, once`);
  const code = await ended("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], path);
  if (code !== 0) throw new Error(`npm ci in ${folder} ended with ${code}: it needs the network once`);
  await writeFile(installed, locked);
}

/** Runs a folder's `main.ts` in a process of its own, and gives this one its exit code. */
export async function runOwn(folder: OwnFolder, args = process.argv.slice(2)): Promise<void> {
  await installOwn(folder);
  const options = ["--conditions=leasehold-source", "--import", "tsx"];
  process.exitCode = await ended(
    process.execPath,
    [...options, "main.ts", ...args],
    join(repositoryFolder, folder),
  );
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
