/**
 * Strangers' projects: each is made outside the repository, installs the packed archives, and does with them what its
 * owner would. It needs the network, for what the projects install beside them.
 *
 *     npm run evidence -- consumers [newcomer cdk-init]
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import { packedArchives } from "../support/packed.ts";
import { type Consumer, cdkInit } from "./cdk-init.ts";
import { newcomer } from "./newcomer.ts";
import { StrangersProject } from "./project.ts";

const consumers: Readonly<Record<string, Consumer>> = { newcomer, "cdk-init": cdkInit };

const named = process.argv.slice(2);
const unknown = named.filter((each) => consumers[each] === undefined);
if (unknown.length > 0) {
  throw new Error(`${unknown} is no project; allowed: ${Object.keys(consumers).join(", ")}`);
}

const { devDependencies } = JSON.parse(await readFile(join(repositoryFolder, "package.json"), "utf8")) as {
  readonly devDependencies: Readonly<Record<string, string>>;
};
const destination = await mkdtemp(join(tmpdir(), "leasehold-archives-"));
const archives = await packedArchives(destination);
/** The archive of a package; of another one, the version that the repository has. */
const installed = (name: string): string =>
  archives.get(name) ?? `${name}@${devDependencies[name] ?? "latest"}`;

async function works(name: string): Promise<boolean> {
  const project = await StrangersProject.create(name);
  try {
    await consumers[name]?.(project, installed);
    return true;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return false;
  } finally {
    await project.remove();
  }
}
// Side by side: an installation mostly waits for the network.
const working = await Promise.all((named.length > 0 ? named : Object.keys(consumers)).map(works));
await rm(destination, { recursive: true, force: true });
const failed = working.filter((each) => !each).length;
console.log(failed === 0 ? "all work" : `${failed} do not work`);
process.exitCode = failed === 0 ? 0 : 1;
