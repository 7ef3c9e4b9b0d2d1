import { join } from "node:path";
import { oldestNode } from "../support/packed.ts";
import type { StrangersProject } from "./project.ts";
import { checkTemplate } from "./template.ts";

/** What the projects have in common. */
export interface Supplies {
  /** The archives' paths by the packages' names. */
  readonly archives: ReadonlyMap<string, string>;
  /** `name@version` of a package, in the version that the repository has. */
  readonly versioned: (name: string) => string;
  /** The CDK's own command. */
  readonly cdk: string;
}

/** What somebody does with the packages: it rejects where anything does not work. */
export type Consumer = (project: StrangersProject, supplies: Supplies) => Promise<void>;

const nodes = [
  ["the oldest Node", oldestNode],
  ["the newest Node", process.execPath],
] as const;
const clientPackages = ["@leasehold/client", "@leasehold/jobs", "@leasehold/middy"];

function archivesOf({ archives }: Supplies, names: readonly string[]): string[] {
  return names.map((name) => {
    const archive = archives.get(name);
    if (archive === undefined) throw new Error(`${name} was not packed; packed: ${[...archives.keys()]}`);
    return archive;
  });
}

function checkDone(output: string): void {
  if (!/^done: lock, .*middy$/m.test(output)) throw new Error(`the program said ${JSON.stringify(output)}`);
}

/** A CDK app as `cdk init app --language typescript` makes it, with the tests, the compiler and the settings from there. */
export const cdkInit: Consumer = async (project, supplies) => {
  const init = ["init", "app", "--language", "typescript", "--generate-only"];
  await project.step("cdk init", supplies.cdk, init);
  await project.install([
    ...archivesOf(supplies, ["@leasehold/cdk", ...clientPackages]),
    ...["aws-cdk-lib", "constructs", "@aws-sdk/client-dynamodb", "@types/aws-lambda"].map(supplies.versioned),
  ]);
  await project.writeFixture("stranger-stack.ts", "lib/stranger-stack.ts", "./$1");
  await project.writeFixture("lock.ts", "lib/lock.ts", "./$1");
  await project.writeFixture("stack-jest.ts", "test/stranger.test.ts", "../lib/$1");
  await project.writeFixture("lock-jest.ts", "test/lock.test.ts", "../lib/$1");
  await project.step("npm test (Jest)", "npm", ["test"], 240_000);
  await project.step("npx cdk synth", "npx", ["cdk", "synth", "--quiet", "--no-notices"], 240_000);
  await checkTemplate(join(project.folder, "cdk.out"));
};

/** The library without the CDK, under all that people run TypeScript with. Formats and bundles are those of packed-packages.test.ts. */
export const libraryAlone: Consumer = async (project, supplies) => {
  const manifest = { name: "stranger", private: true, jest: { preset: "ts-jest" } };
  await project.write("package.json", JSON.stringify(manifest));
  const tools = ["typescript@5.4.5", "ts-node@10.9.2", "ts-jest@29.4.15", "jest@30.5.2", "@types/jest@30"];
  const others = ["@aws-sdk/client-dynamodb", "@types/node", "@types/aws-lambda", "tsx"];
  await project.install([
    ...archivesOf(supplies, clientPackages),
    ...tools,
    ...others.map(supplies.versioned),
  ]);
  // As ever so many projects have it: CommonJS, and the resolution from before `exports`.
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022"],
    module: "commonjs",
    moduleResolution: "node10",
    strict: true,
    esModuleInterop: true,
  };
  await project.write("tsconfig.json", JSON.stringify({ compilerOptions }));
  for (const fixture of ["lock.ts", "main.ts"]) await project.writeFixture(fixture, `lib/${fixture}`, "./$1");
  await project.writeFixture("lock-jest.ts", "test/lock.test.ts", "../lib/$1");
  await project.step("tsc, node10", "npx", ["tsc", "--noEmit"]);
  for (const [name, node] of nodes) {
    const by = (tool: string, ...args: string[]): Promise<string> =>
      project.step(`${tool} on ${name}`, node, [`node_modules/.bin/${tool}`, ...args]);
    checkDone(await by("ts-node", "lib/main.ts"));
    checkDone(await by("tsx", "lib/main.ts"));
    await by("jest");
  }
};
