import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, type Stack, Stage, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
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
