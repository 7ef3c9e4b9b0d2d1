/**
 * Strangers' projects: each is made outside the repository, installs the packed archives, and does with them what its
 * owner would. It needs the network, for what the projects install beside them.
 *
 *     npm run evidence -- consumers [newcomer cdk-init] [--keep]
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import { packedArchives } from "../support/packed.ts";
import { newcomer } from "./newcomer.ts";
import { StrangersProject } from "./project.ts";
import { type Consumer, cdkInit, type Supplies } from "./projects.ts";

const consumers: Readonly<Record<string, Consumer>> = {
  newcomer,
  "cdk-init": cdkInit,
};

const args = process.argv.slice(2);
const isKept = args.includes("--keep");
const named = args.filter((each) => each !== "--keep");
const unknown = named.filter((each) => consumers[each] === undefined);
if (unknown.length > 0) {
  throw new Error(`${unknown} is no project; allowed: ${Object.keys(consumers).join(", ")}`);
}

const { devDependencies } = JSON.parse(await readFile(join(repositoryFolder, "package.json"), "utf8")) as {
  readonly devDependencies: Readonly<Record<string, string>>;
};
const destination = await mkdtemp(join(tmpdir(), "leasehold-archives-"));
const supplies: Supplies = {
  archives: await packedArchives(destination),
  versioned: (name) => `${name}@${devDependencies[name] ?? "latest"}`,
  cdk: join(repositoryFolder, "node_modules/.bin/cdk"),
};

const failures: unknown[] = [];
const since = performance.now();
const waiting = named.length > 0 ? named : Object.keys(consumers);
async function tryProjects(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const project = await StrangersProject.create(name);
    try {
      await consumers[name]?.(project, supplies);
    } catch (error) {
      failures.push(error);
      console.error(error instanceof Error ? error.message : error);
    } finally {
      if (isKept) console.log(`${name}: kept in ${project.folder}`);
      else await project.remove();
    }
  }
}
// Two at a time: an installation mostly waits for the network.
await Promise.all([tryProjects(), tryProjects()]);
await rm(destination, { recursive: true, force: true });
const seconds = ((performance.now() - since) / 1_000).toFixed(0);
console.log(
  failures.length === 0 ? `all work (${seconds} s)` : `${failures.length} do not work (${seconds} s)`,
);
process.exitCode = failures.length === 0 ? 0 : 1;
