import { join } from "node:path";
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

const clientPackages = ["@leasehold/client", "@leasehold/jobs", "@leasehold/middy"];

function archivesOf({ archives }: Supplies, names: readonly string[]): string[] {
  return names.map((name) => {
    const archive = archives.get(name);
    if (archive === undefined) throw new Error(`${name} was not packed; packed: ${[...archives.keys()]}`);
    return archive;
  });
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
