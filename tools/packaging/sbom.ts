/**
 * A bill of materials for each published package, in CycloneDX: the package, and all that its users install with it, each
 * with its version, licence and hash. npm writes it, from a lock file of that package alone.
 */
import { mkdir, mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockfile } from "./audit.ts";
import { type LockedPackage, type Lockfile, nameOf, productionClosure } from "./lockfile.ts";
import { npm } from "./pack.ts";
import { publishedPackages } from "./prepare.ts";

/**
 * Gives the lock file of a project that is one published package: what `npm sbom` is to describe. In the repository's own,
 * what is also used for development counts as that alone, and npm would leave it out.
 */
export function lockfileOf(locked: Lockfile, folder: string): Lockfile & { readonly name: string } {
  const own = locked.packages[folder] as LockedPackage;
  const entries = productionClosure(locked, folder).map((path): [string, LockedPackage] => {
    const entry = locked.packages[path] as LockedPackage;
    return path.includes("node_modules/")
      ? [path, brought(entry)]
      : [`node_modules/${nameOf(path, entry)}`, brought(entry)];
  });
  const packages = { "": brought(own), ...Object.fromEntries(entries) };
  return { name: nameOf(folder, own), lockfileVersion: 3, packages };
}

/** An entry as its users have it: peers and what it is developed with are not its own. */
function brought(entry: LockedPackage): LockedPackage {
  const others = new Set([
    "dev",
    "devOptional",
    "peer",
    "devDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
  ]);
  return Object.fromEntries(Object.entries(entry).filter(([field]) => !others.has(field)));
}

/** Writes the bill of materials of every published package into a folder, and gives the files' paths. */
export async function writeBills(destination: string): Promise<string[]> {
  const locked = await lockfile();
  await mkdir(destination, { recursive: true });
  const files: string[] = [];
  for (const name of await publishedPackages()) {
    const file = join(destination, `leasehold-${name}.cdx.json`);
    await writeFile(file, await billOf(lockfileOf(locked, `packages/${name}`)));
    files.push(file);
  }
  return files;
}

/** Lets npm describe a project that is nothing but a lock file. It takes the project's name from its folder. */
export async function billOf(project: ReturnType<typeof lockfileOf>): Promise<string> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), "leasehold-sbom-"));
  const folder = join(temporary.path, project.name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify(project.packages[""]));
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(project));
  const args = ["sbom", "--sbom-format", "cyclonedx", "--sbom-type", "library", "--package-lock-only"];
  return (await npm(args, folder)).stdout;
}
