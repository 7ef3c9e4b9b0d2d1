// @module-tag long
import { describe, expect, test } from "vitest";
import { acknowledgedFindings, acknowledgeFindings } from "../../infra/acknowledged-findings.ts";
import { findingsIn } from "../support/cdk-nag.ts";
import { templateProblems } from "../support/cloudformation.ts";
import { leaseholdStack, leaseholdTemplate } from "../support/cloudformation-app.ts";

const { json } = leaseholdTemplate();

test("AWS's own validator finds nothing wrong with the template, and no warning either", () => {
  expect(templateProblems(json)).toEqual([]);
});

describe("cdk-nag", () => {
  test("finds exactly what is acknowledged: nothing more, and nothing less", () => {
    const acknowledged = acknowledgedFindings.map(({ path, id }) => `Leasehold/${path} ${id}`);
    expect(findingsIn(leaseholdStack())).toEqual(acknowledged.sort());
  });

  test("has nothing left to say once that is acknowledged", () => {
    const stack = leaseholdStack();
    acknowledgeFindings(stack);
    expect(findingsIn(stack)).toEqual([]);
  });

  test("is answered with a reason for each finding, none of which is acknowledged twice", () => {
    const findings = acknowledgedFindings.map(({ path, id }) => `${path} ${id}`);
    expect(new Set(findings).size).toBe(findings.length);
    for (const { reason } of acknowledgedFindings) expect(reason.length).toBeGreaterThan(30);
  });
});
