import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import { strangersEnvironment } from "./project.ts";
import type { Registry } from "./registry.ts";

const run = promisify(execFile);

interface Workflow {
  readonly jobs: { readonly publish: { readonly steps: readonly { readonly run?: string }[] } };
}

/** The command of the release workflow that publishes, word for word but for the provenance: that is GitHub's to sign. */
async function publishing(): Promise<string> {
  const text = await readFile(join(repositoryFolder, ".github/workflows/release.yml"), "utf8");
  const { steps } = (parse(text) as Workflow).jobs.publish;
  const command = steps.flatMap(({ run: one = "" }) => (one.includes("npm publish") ? one : []))[0] ?? "";
  return command.replace("--provenance", "--provenance=false");
}

/**
 * Publishes the archives into an empty registry, as the release workflow does: first half of them, until an answer is lost;
 * then the rest; and once more. Rejects where the registry has other archives then, or another version under the tag.
 */
export async function publishInto(registry: Registry, archives: ReadonlyMap<string, string>): Promise<void> {
  const [first = ""] = archives.values();
  const folder = await mkdtemp(join(tmpdir(), "leasehold-publication-"));
  try {
    await symlink(dirname(first), join(folder, "tarballs"));
    const { host } = new URL(registry.address);
    await writeFile(join(folder, ".npmrc"), `//${host}/:_authToken=nobody\nregistry=${registry.address}\n`);
    const sums = (await readFile(join(folder, "tarballs/SHA256SUMS"), "utf8")).trim();
    const isCandidate = /-rc\.\d+\.tgz$/.test(first);
    const tag = isCandidate ? "next" : "latest";
    const npm = { npm_config_userconfig: join(folder, ".npmrc"), npm_config_fetch_retries: "0" };
    const options = { cwd: folder, env: { ...strangersEnvironment(), ...npm, SUMS: sums, TAG: tag } };
    const command = await publishing();
    // As GitHub starts it.
    const publish = () => run("bash", ["-e", "-c", command], options);

    registry.takes = Math.floor(archives.size / 2);
    const stopped = await publish().then(
      () => undefined,
      (error: Error) => error,
    );
    const half = registry.published.size;
    if (stopped === undefined || half !== Math.floor(archives.size / 2))
      throw new Error(`${half} were published, and then: ${stopped?.message ?? "nothing"}`);
    registry.takes = Number.POSITIVE_INFINITY;
    await publish();
    await publish();
    for (const [name, archive] of archives) {
      const isSame = registry.published.get(name)?.equals(await readFile(archive));
      const version = registry.tagged(name, tag);
      if (!isSame || !archive.endsWith(`-${version}.tgz`))
        throw new Error(`${name} was not published as packed`);
    }
    console.log(`published ${archives.size} packages as ${tag}: ${half}, stopped, and the others`);
  } finally {
    await rm(folder, { recursive: true });
  }
}
