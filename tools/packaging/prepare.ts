import { access, copyFile, glob, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Manifest, publishedManifest, type RepositoryManifest } from "./manifest.ts";

/** The repository's own folder. */
export const repositoryFolder: string = fileURLToPath(new URL("../..", import.meta.url));

/** What every package has from the repository's own folder. */
const commonFiles = ["LICENSE", "CHANGELOG.md"];

async function readJson<T>(file: string): Promise<T> {
  return JSON.parse(await readFile(file, "utf8")) as T;
}

/** The folders' names, under `packages`, of what is published; a package that depends on another one comes after it. */
export async function publishedPackages(): Promise<readonly string[]> {
  const found: { readonly name: string; readonly manifest: Manifest }[] = [];
  for await (const file of glob("packages/*/package.json", { cwd: repositoryFolder })) {
    const manifest = await readJson<Manifest>(join(repositoryFolder, file));
    if (manifest.private !== true) found.push({ name: file.split(/[\\/]/)[1] ?? "", manifest });
  }
  const inside = ({ manifest }: (typeof found)[number]): number =>
    Object.keys({ ...(manifest.dependencies ?? {}), ...(manifest.optionalDependencies ?? {}) }).filter(
      (name) => name.startsWith("@leasehold/"),
    ).length;
  return found.sort((a, b) => inside(a) - inside(b) || a.name.localeCompare(b.name)).map(({ name }) => name);
}

/** Removes what an earlier build made of sources that are no more: the compiler leaves it where it is. */
async function removeStale(folder: string): Promise<void> {
  for await (const file of glob("dist/{cjs,esm}/**/*.{js,d.ts,map}", { cwd: folder })) {
    const source = file.replace(/^dist.(cjs|esm)/, "src").replace(/(\.d\.ts|\.js)(\.map)?$/, ".ts");
    await access(join(folder, source)).catch(() => rm(join(folder, file)));
  }
}

/** Makes a copy of a package's folder that has been built ready to be packed: with the published manifest. */
export async function prepare(folder: string, name: string): Promise<void> {
  const manifestFile = join(folder, "package.json");
  const manifest = await readJson<Manifest>(manifestFile);
  await removeStale(folder);
  // For bundlers, which read of a file what the nearest manifest says.
  await writeFile(join(folder, "dist/esm/package.json"), '{ "type": "module", "sideEffects": false }\n');
  for (const file of commonFiles) await copyFile(join(repositoryFolder, file), join(folder, file));
  const repository = await readJson<RepositoryManifest>(join(repositoryFolder, "package.json"));
  const published = publishedManifest(manifest, repository, `packages/${name}`);
  await writeFile(manifestFile, `${JSON.stringify(published, undefined, 2)}\n`);
}
