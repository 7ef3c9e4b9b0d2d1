// Publishes the packages, or shows that they could be: in the order in which they depend on each other.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { npm, packAll } from "./pack.ts";
import { repositoryFolder } from "./prepare.ts";
import { versionProblems } from "./version.ts";

/** What npm said of one package. */
export interface Published {
  readonly name: string;
  /** npm's warnings, without those on a user's own settings, and on a dry run by somebody who is not logged in. */
  readonly warnings: readonly string[];
}

/**
 * Publishes every package, or with `dryRun` does all that npm does before it sends anything. Rejects where the versions
 * disagree, and where npm refuses a package: what comes before that is published.
 *
 * A real run needs npm's provenance, which a workflow has and a laptop has not.
 */
export async function publishAll(options: { readonly dryRun: boolean }): Promise<readonly Published[]> {
  const problems = await versionProblems();
  if (problems.length > 0) throw new Error(`nothing was published:\n${problems.join("\n")}`);
  const folder = await mkdtemp(join(tmpdir(), "leasehold-publish-"));
  const published: Published[] = [];
  try {
    for (const [name, archive] of await packAll(folder)) {
      const args = ["publish", archive, "--ignore-scripts", ...(options.dryRun ? ["--dry-run"] : [])];
      const { stderr } = await npm(args, repositoryFolder);
      const lines = stderr.split("\n").filter((line) => /^npm warn /i.test(line));
      const own = /unknown (user|env|cli) config|requires you to be logged in .*\(dry-run\)/i;
      const warnings = lines.filter((line) => !own.test(line));
      published.push({ name, warnings });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return published;
}
