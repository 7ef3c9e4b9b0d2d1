import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, type Stack, Stage, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import { Node } from "constructs";
import { vi } from "vitest";

interface Report {
  readonly pluginReports: readonly {
    readonly violations: readonly {
      readonly ruleName: string;
      readonly violatingConstructs: readonly { readonly constructPath: string }[];
    }[];
  }[];
}

/** What cdk-nag finds in a stack, each as a construct's path and a rule. */
export function findingsIn(stack: Stack): string[] {
  const stage = Stage.of(stack);
  if (!(stage instanceof App)) throw new Error("the stack is in no app");
  Validations.of(stage).addPlugins(new AwsSolutionsChecks(stage));
  let failure: unknown;
  const silenced = vi.spyOn(console, "error").mockReturnValue();
  const exitCode = process.exitCode;
  try {
    stage.synth();
  } catch (error) {
    failure = error;
  } finally {
    silenced.mockRestore();
    process.exitCode = exitCode;
  }
  const file = join(stage.outdir, "validation-report.json");
  const { pluginReports } = JSON.parse(readFileSync(file, "utf8")) as Report;
  const findings = pluginReports.flatMap(({ violations }) =>
    violations.flatMap(({ ruleName, violatingConstructs }) =>
      violatingConstructs.map(({ constructPath }) => `${constructPath} ${ruleName}`),
    ),
  );
  if (findings.length === 0 && failure !== undefined) throw failure;
  return findings.sort();
}

/** Findings of a stack that are accepted and do not occur, each as a construct's path and a rule. */
export function needlessIn(stack: Stack): string[] {
  const accepted = stack.node
    .findAll()
    .flatMap(({ node }) =>
      node.metadata
        .filter(({ type }) => type === "aws:cdk:acknowledged-rules")
        .flatMap(({ data }) => Object.keys(data).map((id) => [node.path, id.replace(/^.*::(?=Aws)/, "")])),
    );
  const unaccepted = vi.spyOn(Node.prototype, "metadata", "get").mockReturnValue([]);
  try {
    const findings = findingsIn(stack);
    const occurs = ([path = "", id = ""]: string[]): boolean =>
      findings.some((finding) => finding.startsWith(path) && finding.endsWith(` ${id}`));
    return accepted.filter((one) => !occurs(one)).map((one) => one.join(" "));
  } finally {
    unaccepted.mockRestore();
  }
}
