import { join } from "node:path";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import type { StrangersProject } from "./project.ts";
import { checkTemplate } from "./template.ts";

/** What somebody does with the packages: it rejects where anything does not work. `installed` says what npm installs for a name. */
export type Consumer = (project: StrangersProject, installed: (name: string) => string) => Promise<void>;

/** A CDK app as `cdk init app --language typescript` makes it, with the tests, the compiler and the settings from there. */
export const cdkInit: Consumer = async (project, installed) => {
  const init = ["init", "app", "--language", "typescript", "--generate-only"];
  await project.step("cdk init", join(repositoryFolder, "node_modules/.bin/cdk"), init);
  const own = ["cdk", "client", "jobs", "middy"].map((name) => `@leasehold/${name}`);
  const others = ["aws-cdk-lib", "constructs", "@aws-sdk/client-dynamodb", "@types/aws-lambda"];
  await project.install([...own, ...others].map(installed));
  await project.writeFixture("stranger-stack.ts", "lib/stranger-stack.ts", "./$1");
  await project.writeFixture("lock.ts", "lib/lock.ts", "./$1");
  await project.writeFixture("stack-jest.ts", "test/stranger.test.ts", "../lib/$1");
  await project.writeFixture("lock-jest.ts", "test/lock.test.ts", "../lib/$1");
  await project.step("npm test (Jest)", "npm", ["test"]);
  await project.step("npx cdk synth", "npx", ["cdk", "synth", "--quiet", "--no-notices"]);
  await checkTemplate(join(project.folder, "cdk.out"));
};
