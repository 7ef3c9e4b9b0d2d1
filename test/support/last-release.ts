/** The last release before the commit that is checked out, built from the history of the repository. */
import { execFile, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";

const run = promisify(execFile);

/** Why the last release cannot be built here; undefined where it can. */
export const missingHistory: string | undefined = (() => {
  const { stdout } = spawnSync("git", ["rev-parse", "--is-shallow-repository"], {
    cwd: repositoryFolder,
    encoding: "utf8",
  });
  if (stdout?.trim() === "false") return undefined;
  return "the last release is built from the history: clone the repository with all of it";
})();

/** The commit before this one that has last changed the version. Rejects where the history is not there. */
export async function lastRelease(): Promise<{ readonly commit: string; readonly version: string }> {
  if (missingHistory !== undefined) throw new Error(missingHistory);
  const manifest = "packages/client/package.json";
  const commits = await git("log", "--format=%H", '-G"version": ', "HEAD~1", "--", manifest);
  const [commit = ""] = commits.split("\n", 1);
  const { version } = JSON.parse(await fileAt(commit, manifest)) as { readonly version: string };
  return { commit, version };
}

/** A file of the repository as a commit has it. */
export function fileAt(commit: string, file: string): Promise<string> {
  return git("show", `${commit}:${file}`);
}

/** A program that uses the packages, bundled with those of the last release. */
export interface ReleaseBundle {
  readonly version: string;
  readonly file: string;
}

/** Bundles the client and the jobs of the last release, as a script that exports what `Release` has. */
export function bundleLastRelease(): Promise<ReleaseBundle> {
  return bundled("release", "cjs", (sources) => ({ stdin: { contents: entry, resolveDir: sources } }));
}

/** Bundles a program of this repository, whose imports of the packages are then those of the last release. */
export function bundleWithLastRelease(program: string): Promise<ReleaseBundle> {
  return bundled(basename(dirname(program)), "esm", () => ({ entryPoints: [program] }));
}

/** Bundles are kept in `node_modules/.cache`, where they find the SDK. */
async function bundled(
  name: string,
  format: "cjs" | "esm",
  input: (sources: string) => BuildOptions,
): Promise<ReleaseBundle> {
  const { commit, version } = await lastRelease();
  const extension = format === "cjs" ? "cjs" : "mjs";
  const file = join(repositoryFolder, "node_modules/.cache/leasehold", `${name}-${commit}.${extension}`);
  const sources = await mkdtemp(join(tmpdir(), "leasehold-release-"));
  try {
    const unpack = `git archive ${commit} packages | tar -x -C "$0"`;
    await run("sh", ["-c", unpack, sources], { cwd: repositoryFolder });
    await mkdir(join(sources, "node_modules/@leasehold"), { recursive: true });
    for (const each of ["client", "jobs"])
      await symlink(join(sources, "packages", each), join(sources, "node_modules/@leasehold", each));
    await build({
      ...input(sources),
      outfile: file,
      bundle: true,
      platform: "node",
      format,
      target: "node22",
      conditions: ["leasehold-source"],
      external: ["@aws-sdk/*", "aws4"],
      logLevel: "error",
      plugins: [importsFrom(sources)],
    });
  } finally {
    await rm(sources, { recursive: true });
  }
  return { version, file };
}

/** Resolves the packages in a folder. An entry that they do not have there is empty. */
function importsFrom(sources: string): Plugin {
  return {
    name: "packages",
    setup({ onResolve, onLoad, resolve }) {
      onResolve({ filter: /^@leasehold\// }, async ({ path, kind, pluginData }) => {
        if (pluginData === sources) return undefined;
        const found = await resolve(path, { kind, resolveDir: sources, pluginData: sources });
        return found.errors.length === 0 ? found : { path, namespace: "missing" };
      });
      onLoad({ filter: /./, namespace: "missing" }, () => ({ contents: "module.exports = {}" }));
    },
  };
}

/** What a release has of `Release`. */
const entry = [
  'export { LeaseClient, LeaseServiceError } from "@leasehold/client";',
  ...["admin", "fair", "group", "leader", "read-write", "semaphore", "single-flight", "together"].map(
    (name) => `export * from "@leasehold/client/${name}";`,
  ),
  'export * from "@leasehold/jobs";',
].join("\n");

async function git(...args: readonly string[]): Promise<string> {
  return (await run("git", args, { cwd: repositoryFolder })).stdout.trim();
}
