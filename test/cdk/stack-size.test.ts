// @module-tag long
/** Thirty locked jobs with their alarms fit into one stack, and no policy of theirs grows with their number. */
import { readFileSync } from "node:fs";
import { LeaseHeartbeat, LeaseTable } from "@leasehold/cdk";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { generatedIn } from "../../tools/bench/costs/markdown.ts";
import {
  awsLimits,
  inlinePolicies,
  stackOfJobs,
  stackSizeReport,
  stackSizes,
} from "../../tools/bench/stack-size.ts";
import { type CloudFormationTemplate, templateProblems } from "../support/cloudformation.ts";
import { machineIn } from "../support/jobs.ts";

const minimize = "@aws-cdk/aws-iam:minimizePolicies";

describe("a heartbeat that guards state machines of one's own", () => {
  const guarding = (machines: number, context: Record<string, unknown> = {}): Stack => {
    const stack = new Stack(new App({ context }), "Guarded");
    const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table: new LeaseTable(stack, "Leases") });
    for (let number = 1; number <= machines; number += 1) {
      heartbeat.guard(machineIn(stack, `Import${number}`), { key: `import-${number}` });
    }
    return stack;
  };

  test("is refused at synth where its role outgrows IAM, with the number", () => {
    expect(() => Template.fromStack(guarding(10))).not.toThrow();
    expect(() => Template.fromStack(guarding(60))).toThrow(
      /the role of Guarded\/Heartbeat has inline policies of \d{5} characters, and IAM takes 10240: guard some/,
    );
    expect(() => Template.fromStack(guarding(30, { [minimize]: true }))).not.toThrow();
  });
});

describe("a stack of locked jobs", () => {
  test("is within the limits of CloudFormation and IAM, as the page says: else run npm run bench -- stack-size", () => {
    const sizes = stackSizes();
    for (const { resources, templateBytes, policyCharacters } of sizes) {
      expect(resources).toBeLessThanOrEqual(awsLimits.resources);
      expect(templateBytes).toBeLessThan(awsLimits.template / 2);
      expect(policyCharacters).toBeLessThan(awsLimits.inlinePolicies);
    }
    const page = readFileSync("docs/limits.md", "utf8");
    expect(generatedIn(page, "npm run bench -- stack-size")).toBe(stackSizeReport(sizes));
  });

  test("is a template that CloudFormation's own validator accepts, with and without merged policies", () => {
    for (const context of [{}, { [minimize]: true }]) {
      const template = Template.fromStack(stackOfJobs(30, context)).toJSON();
      expect(templateProblems(template)).toEqual([]);
    }
  });

  test("has policies of keepers that do not grow with the jobs", () => {
    const keepers = (jobs: number): number[] => {
      const template = Template.fromStack(stackOfJobs(jobs)).toJSON() as CloudFormationTemplate;
      const roles = [...inlinePolicies(template)].filter(([role]) =>
        /^Leasehold(Heartbeat|Redrive)/.test(role),
      );
      return roles.map(([, characters]) => characters);
    };
    expect(keepers(30)).toEqual(keepers(1));
    expect(keepers(1)).toHaveLength(5);
  });
});
