/**
 * What is wrong with the packages that this repository installs and brings to its users: where they come from, their
 * licences, scripts and versions, and what the registry's advisories say of them.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ownFolders } from "../own-dependencies.ts";
import { type LockedPackage, type Lockfile, productionClosure } from "./lockfile.ts";
import { npm } from "./pack.ts";
import { publishedPackages, repositoryFolder } from "./prepare.ts";
import { allManifests } from "./version.ts";

/** Users may combine these with any licence of their own, and owe no more than a notice. */
const allowedLicences = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
];
const publicRegistry = "https://registry.npmjs.org/";
const exactVersion = /^(npm:(@[\w-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/;

/** What a manifest asks for. */
interface Wants {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Where an entry comes from, and what proves that it is the one that was reviewed. */
export function originProblems({ lockfileVersion, packages }: Lockfile): string[] {
  const problems = lockfileVersion === 3 ? [] : [`the lock file has version ${lockfileVersion}, not 3`];
  for (const [folder, entry] of Object.entries(packages)) {
    if (!folder.includes("node_modules/") || entry.link || entry.inBundle) continue;
    const { resolved = publicRegistry, integrity = "" } = entry;
    // Without an address npm asks the registry that it is set up for, and compares the hash.
    if (!resolved.startsWith(publicRegistry)) problems.push(`${folder} comes from ${resolved}`);
    if (!/^sha512-[\w+/]{86}==$/.test(integrity)) problems.push(`${folder} has no SHA-512 of its archive`);
  }
  return problems;
}

/** What users would get with the published packages in these folders: its licences, and scripts that run at an install. */
export function productionProblems(lockfile: Lockfile, folders: readonly string[]): string[] {
  const closure = new Set(folders.flatMap((folder) => productionClosure(lockfile, folder)));
  const problems: string[] = [];
  for (const folder of [...closure, ...folders]) {
    const entry = lockfile.packages[folder] as LockedPackage;
    const { license = "none", hasInstallScript } = entry;
    if (!isAllowed(license)) problems.push(`${folder} has the licence ${license}`);
    if (hasInstallScript) problems.push(`${folder} runs a script when it is installed`);
  }
  return [...new Set(problems)];
}

/** Whether an SPDX expression leaves a choice that is allowed: one licence, or several between which users choose. */
function isAllowed(expression: string): boolean {
  const choices = expression.replace(/^\((.*)\)$/, "$1").split(" OR ");
  return choices.some((licence) => allowedLicences.includes(licence));
}

/** Versions that a manifest leaves open. A peer's may be: it is the user's. */
export function pinProblems(file: string, wants: Wants): string[] {
  const all = { ...wants.dependencies, ...wants.optionalDependencies, ...wants.devDependencies };
  return Object.entries(all)
    .filter(([, version]) => !exactVersion.test(version))
    .map(([name, version]) => `${file} asks for ${name} ${version}, which is not one version`);
}

/** The lock file of this repository, or of a program with dependencies of its own. */
export async function lockfile(folder = "."): Promise<Lockfile> {
  const file = join(repositoryFolder, folder, "package-lock.json");
  return JSON.parse(await readFile(file, "utf8")) as Lockfile;
}

/** All that is wrong with the repository's own lock files and manifests; empty where nothing is. */
export async function auditProblems(): Promise<string[]> {
  const locked = await lockfile();
  const folders = (await publishedPackages()).map((name) => `packages/${name}`);
  const manifests = await Promise.all(
    (await allManifests()).map(
      async (file) => [file, await readFile(join(repositoryFolder, file), "utf8")] as const,
    ),
  );
  return [
    ...[locked, ...(await Promise.all(ownFolders.map(lockfile)))].flatMap(originProblems),
    ...productionProblems(locked, folders),
    ...manifests.flatMap(([file, text]) => pinProblems(file, JSON.parse(text) as Wants)),
  ];
}

/** What `npm audit --json` writes, as far as it is read here. */
interface AuditReport {
  readonly message?: string;
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly severity: string; readonly nodes: readonly string[] }>
  >;
}

/** What the registry knows. */
type Advisories =
  /** It could not be asked, and why. */
  | { readonly notAsked: string }
  /** Weaknesses in what users get, and in what this repository alone uses. */
  | { readonly production: readonly string[]; readonly development: readonly string[] };

/** Asks the registry for advisories on every package of the lock files. */
export async function advisories(): Promise<Advisories> {
  const locked = await lockfile();
  const folders = (await publishedPackages()).map((name) => `packages/${name}`);
  const known = { production: [] as string[], development: [] as string[] };
  const closure = new Set(folders.flatMap((folder) => productionClosure(locked, folder)));
  for (const folder of [".", ...ownFolders]) {
    // It ends with an error where it finds something, and where it could not ask.
    const asked = npm(["audit", "--json", "--package-lock-only"], join(repositoryFolder, folder));
    const { stdout } = await asked.catch((error: unknown) => error as { readonly stdout: string });
    const found = sorted(stdout, folder === "." ? closure : new Set());
    if ("notAsked" in found) return found;
    known.production.push(...found.production);
    known.development.push(...found.development);
  }
  return known;
}

/** Sorts npm's report by whom a weakness is about. */
export function sorted(report: string, production: ReadonlySet<string>): Advisories {
  const parsed = report.trim() === "" ? {} : (JSON.parse(report) as AuditReport);
  const { vulnerabilities, message = "npm said nothing" } = parsed;
  if (vulnerabilities === undefined) return { notAsked: message };
  const found = { production: [] as string[], development: [] as string[] };
  for (const [name, { severity, nodes }] of Object.entries(vulnerabilities)) {
    const isBrought = nodes.some((folder) => production.has(folder));
    found[isBrought ? "production" : "development"].push(`${name}: ${severity}`);
  }
  return found;
}
