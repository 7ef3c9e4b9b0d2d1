// Shows that the packages could be published. The workflow "release" publishes them: it alone has the right to do so.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { archivesIn, npm, packAll } from "./pack.ts";
import { repositoryFolder } from "./prepare.ts";
import { versionProblems } from "./version.ts";

/** What npm said of one package. */
export interface Published {
  readonly name: string;
  /** npm's warnings, without those on a user's own settings, and on somebody who is not logged in. */
  readonly warnings: readonly string[];
}

/**
 * Does all that npm does before it sends anything, with the archives in a folder; without one, with those of now. Rejects
 * where the versions disagree, and where npm refuses a package.
 */
export async function checkPublishing(folder?: string): Promise<readonly Published[]> {
  const problems = await versionProblems();
  if (problems.length > 0) throw new Error(`this cannot be published:\n${problems.join("\n")}`);
  const packed = await mkdtemp(join(tmpdir(), "leasehold-publish-"));
  const published: Published[] = [];
  try {
    for (const [name, archive] of folder === undefined ? await packAll(packed) : await archivesIn(folder)) {
      const args = ["publish", archive, "--ignore-scripts", "--dry-run"];
      const { stderr } = await npm(args, repositoryFolder);
      const lines = stderr.split("\n").filter((line) => /^npm warn /i.test(line));
      const own = /unknown (user|env|cli) config|requires you to be logged in .*\(dry-run\)/i;
      const warnings = lines.filter((line) => !own.test(line));
      published.push({ name, warnings });
    }
  } finally {
    await rm(packed, { recursive: true, force: true });
  }
  return published;
}
