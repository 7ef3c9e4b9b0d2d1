// What npm's lock file says of the published packages: which packages each of them brings to its users.

/** One entry of a lock file of version 3, as far as the audit looks at it. */
export interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  /** The entry of a workspace in `node_modules`. */
  readonly link?: boolean;
  /** Travels inside of the package above it, and so is covered by that one's integrity. */
  readonly inBundle?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** A lock file. Entries are named by their folders. */
export interface Lockfile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** What a package's users install with it. Peers are the user's own choice. */
function dependenciesOf({ dependencies, optionalDependencies }: LockedPackage): string[] {
  return Object.keys({ ...dependencies, ...optionalDependencies });
}

/**
 * Gives the folders of all that a package's users install with it, the package's own left out; workspaces by their own
 * folders. Throws where the lock file lacks one.
 *
 * npm's own `npm sbom` and `npm audit --omit=dev` leave out what the repository also uses for development, as the AWS SDK.
 */
export function productionClosure({ packages }: Lockfile, folder: string): string[] {
  const found = new Set<string>();
  const open = [folder];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const name of dependenciesOf(packages[at] ?? {})) {
      const dependency = resolve(packages, at, name);
      if (!found.has(dependency)) open.push(dependency);
      found.add(dependency);
    }
  }
  return [...found].sort();
}

/** Where a package of this name is for a package in that folder: as Node looks for it, from the inside out. */
function resolve(packages: Lockfile["packages"], from: string, name: string): string {
  for (let folder = from; ; folder = parentOf(folder)) {
    const candidate = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    const entry = packages[candidate];
    if (entry !== undefined) return entry.link ? String(entry.resolved) : candidate;
    if (folder === "") throw new Error(`the lock file has no ${name}, on which ${from} depends`);
  }
}

/** The folder whose `node_modules` a package is in; the repository's own for a workspace. */
function parentOf(folder: string): string {
  const end = folder.lastIndexOf("node_modules/");
  return end <= 0 ? "" : folder.slice(0, end - 1);
}

/** The name of the package in a folder. */
export function nameOf(folder: string, { name }: LockedPackage): string {
  return name ?? folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
}
