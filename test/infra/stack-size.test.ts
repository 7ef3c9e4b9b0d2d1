/** Thirty locked jobs with their alarms fit into one stack, and no policy of theirs grows with their number. */
import { readFileSync } from "node:fs";
import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { generatedIn } from "../../bench/costs/markdown.ts";
import {
  awsLimits,
  inlinePolicies,
  measuredJobs,
  sizeOf,
  stackOfJobs,
  stackSizeReport,
} from "../../bench/stack-size.ts";
import { type CloudFormationTemplate, templateProblems } from "../support/cloudformation.ts";

const minimize = "@aws-cdk/aws-iam:minimizePolicies";

describe("a stack of locked jobs", () => {
  test.each(measuredJobs)("holds %i of them within the limits of CloudFormation and IAM", (jobs) => {
    const { resources, templateBytes, policyCharacters } = sizeOf(stackOfJobs(jobs));
    expect(resources).toBeLessThanOrEqual(awsLimits.resources);
    expect(templateBytes).toBeLessThan(awsLimits.template / 2);
    expect(policyCharacters).toBeLessThan(awsLimits.inlinePolicies);
  });

  test("has figures on the page: else run npm run stack-size", () => {
    const page = readFileSync("docs/limits.md", "utf8");
    expect(generatedIn(page, "npm run stack-size")).toBe(stackSizeReport());
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

  test("beyond its limit is refused at synth, with the number", () => {
    const one = sizeOf(stackOfJobs(1)).resources;
    const each = sizeOf(stackOfJobs(2)).resources - one;
    const tooMany = Math.floor((awsLimits.resources - one) / each) + 2;
    expect(() => Template.fromStack(stackOfJobs(tooMany))).toThrow(
      `${one + (tooMany - 1) * each} is greater than allowed maximum of 500`,
    );
  });
});
