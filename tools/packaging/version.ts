// The version of all packages: they have one, and depend on exactly that one of each other.
import { glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ownFolders } from "../own-dependencies.ts";
import { repositoryFolder } from "./prepare.ts";

/** Where the version stands as a constant, for what prints it. */
const constantFile = "packages/cli/src/version.ts";

/** The manifests of the repository, its workspaces and its programs with own dependencies, relative to the repository. */
export async function allManifests(): Promise<readonly string[]> {
  const root = await readFile(join(repositoryFolder, "package.json"), "utf8");
  const { workspaces } = JSON.parse(root) as { readonly workspaces: readonly string[] };
  const files = ["package.json"];
  const patterns = [...workspaces, ...ownFolders].map((folder) => `${folder}/package.json`);
  for await (const file of glob(patterns, { cwd: repositoryFolder })) files.push(file.replaceAll("\\", "/"));
  return files.sort();
}

/**
 * What is wrong with the versions: a manifest with another one, a dependency on another one, a changelog without a
 * section for it. Empty where all agree with the repository's own manifest.
 */
export async function versionProblems(): Promise<readonly string[]> {
  const { version } = JSON.parse(await readFile(join(repositoryFolder, "package.json"), "utf8")) as {
    readonly version: string;
  };
  const problems: string[] = [];
  for (const [file, text] of await versionedFiles()) {
    const changed = withVersion(file, text, version);
    if (changed !== text) problems.push(`${file} has another version than ${version}`);
  }
  const changelog = await readFile(join(repositoryFolder, "CHANGELOG.md"), "utf8");
  if (!changelog.includes(`\n## ${version} - `)) problems.push(`CHANGELOG.md has no section for ${version}`);
  return problems;
}

/** Gives all packages a version, and the changelog's "Unreleased" that version and the day. */
export async function setVersion(version: string, day: string): Promise<void> {
  if (!/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version)) {
    throw new Error(`the version is ${JSON.stringify(version)}; allowed: 1.2.3, or 1.2.3-rc.1`);
  }
  for (const [file, text] of await versionedFiles()) {
    await writeFile(join(repositoryFolder, file), withVersion(file, text, version));
  }
  const changelog = join(repositoryFolder, "CHANGELOG.md");
  const text = await readFile(changelog, "utf8");
  await writeFile(changelog, text.replace("\n## Unreleased\n", `\n## ${version} - ${day}\n`));
}

async function versionedFiles(): Promise<readonly (readonly [string, string])[]> {
  const files = [...(await allManifests()), "package-lock.json", constantFile];
  return await Promise.all(
    files.map(async (file) => [file, await readFile(join(repositoryFolder, file), "utf8")] as const),
  );
}

function withVersion(file: string, text: string, version: string): string {
  if (file === "package-lock.json") return lockWithVersion(text, version);
  if (file === constantFile) return text.replace(/(?<=version = )"[^"]*"/, `"${version}"`);
  return text
    .replace(/(?<=^ {2}"version": )"[^"]*"/m, `"${version}"`)
    .replaceAll(/(?<="@leasehold\/[\w-]+": )"\d[^"]*"/g, `"${version}"`);
}

/** What npm's lock file says of one folder. */
interface LockedPackage {
  version?: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

function lockWithVersion(text: string, version: string): string {
  const lock = JSON.parse(text) as { version: string; packages: Record<string, LockedPackage> };
  lock.version = version;
  for (const [folder, locked] of Object.entries(lock.packages)) {
    if (folder.startsWith("node_modules/") || folder.includes("/node_modules/")) continue;
    locked.version = version;
    for (const dependencies of [locked.dependencies, locked.optionalDependencies]) {
      for (const name of Object.keys(dependencies ?? {})) {
        if (name.startsWith("@leasehold/") && dependencies) dependencies[name] = version;
      }
    }
  }
  return `${JSON.stringify(lock, undefined, 2)}\n`;
}
