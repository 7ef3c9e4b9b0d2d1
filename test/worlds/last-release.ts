/** The last release before the commit that is checked out, built from the history of the repository. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import type { ReleaseBundle } from "./release.ts";

const run = promisify(execFile);

/** The commit before this one that has last changed the version. Rejects where the history is not there. */
export async function lastRelease(): Promise<{ readonly commit: string; readonly version: string }> {
  const isShallow = await git("rev-parse", "--is-shallow-repository").catch(() => "no repository");
  if (isShallow !== "false")
    throw new Error("the last release is built from the history: clone the repository with all of it");
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

/** Bundles the client and the jobs of the last release. The bundle stays in `node_modules/.cache`, where it finds the SDK. */
export async function bundleLastRelease(): Promise<ReleaseBundle> {
  const { commit, version } = await lastRelease();
  const file = join(repositoryFolder, "node_modules/.cache/leasehold", `release-${commit}.cjs`);
  const sources = await mkdtemp(join(tmpdir(), "leasehold-release-"));
  try {
    await run("sh", ["-c", `git archive ${commit} packages | tar -x -C "$0"`, sources], {
      cwd: repositoryFolder,
    });
    await mkdir(join(sources, "node_modules/@leasehold"), { recursive: true });
    for (const name of ["client", "jobs"])
      await symlink(join(sources, "packages", name), join(sources, "node_modules/@leasehold", name));
    const manifest = JSON.parse(await readFile(join(sources, "packages/client/package.json"), "utf8")) as {
      readonly exports: object;
    };
    await build({
      stdin: { contents: entryOf(manifest.exports), resolveDir: sources },
      outfile: file,
      bundle: true,
      platform: "node",
      format: "cjs",
      target: "node22",
      conditions: ["leasehold-source"],
      external: ["@aws-sdk/*", "aws4"],
      logLevel: "error",
    });
  } finally {
    await rm(sources, { recursive: true });
  }
  return { version, file };
}

/** What a release has of `Release`. The client of 1.0.0-rc.1 has an administrator's methods, and always renews together. */
function entryOf(exports: object): string {
  const hasAll = "./admin" in exports;
  return [
    'export { LeaseClient, LeaseServiceError } from "@leasehold/client";',
    ...["fair", "group", "leader", "read-write", "semaphore", "single-flight"].map(
      (entry) => `export * from "@leasehold/client/${entry}";`,
    ),
    'export * from "@leasehold/jobs";',
    hasAll
      ? 'export { LeaseAdmin } from "@leasehold/client/admin"; export { together } from "@leasehold/client/together";'
      : "export class LeaseAdmin { constructor(client) { return client; } }",
  ].join("\n");
}

async function git(...args: readonly string[]): Promise<string> {
  return (await run("git", args, { cwd: repositoryFolder })).stdout.trim();
}
