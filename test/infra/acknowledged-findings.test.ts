import { expect, test } from "vitest";
import { acknowledgeFindings } from "../../infra/acknowledged-findings.ts";
import { needlessIn } from "../support/cdk-nag.ts";
import { leaseholdStack } from "../support/cloudformation-app.ts";

test("no finding of cdk-nag is accepted in the app that does not occur", () => {
  const stack = leaseholdStack();
  acknowledgeFindings(stack);
  expect(needlessIn(stack)).toEqual([]);
});
