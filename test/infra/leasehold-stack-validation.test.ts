import { describe, expect, test } from "vitest";
import { acknowledgedFindings, acknowledgeFindings } from "../../infra/acknowledged-findings.ts";
import { findingsIn } from "../support/cdk-nag.ts";
import { type CloudFormationTemplate, resourcesOf, templateProblems } from "../support/cloudformation.ts";
import { leaseholdStack, leaseholdTemplate } from "../support/cloudformation-app.ts";

const { json } = leaseholdTemplate();

type Properties = Record<string, unknown>;

/** The template with a mistake in its first resource of a type. */
function withMistake(
  type: string,
  mistake: (properties: Properties, template: CloudFormationTemplate) => void,
) {
  const template = structuredClone(json);
  const [first] = resourcesOf(template, type);
  if (first === undefined) throw new Error(`no ${type}`);
  mistake(first[1].Properties, template);
  return template;
}

describe("AWS's own validator", () => {
  test("finds nothing wrong with the template, and no warning either", () => {
    expect(templateProblems(json)).toEqual([]);
  });

  const lambda = "AWS::Lambda::Function";
  const mistakes: [string, string, RegExp, Parameters<typeof withMistake>[1]][] = [
    ["a property that does not exist", lambda, /'Memory' was unexpected/, (it) => (it.Memory = 512)],
    [
      "a nested property that does not exist",
      lambda,
      /'Varables' was unexpected/,
      (it) => ((it.Environment as Properties).Varables = {}),
    ],
    ["a value of a wrong type", lambda, /'soon' is not of type 'integer'/, (it) => (it.Timeout = "soon")],
    ["a value out of range", lambda, /exceeds maximum 900/, (it) => (it.Timeout = 1_000)],
    ["a required property that is missing", lambda, /'Role' is a required/, (it) => delete it.Role],
    [
      "a value that is none of those allowed",
      "AWS::DynamoDB::GlobalTable",
      /'FREE' is not one of/,
      (it) => (it.BillingMode = "FREE"),
    ],
    ["a reference to nothing", lambda, /'Nobody' is not one of/, (it) => (it.Role = { Ref: "Nobody" })],
    [
      "an attribute that does not exist",
      lambda,
      /'Arnn' is not one of/,
      (it) => (it.Role as { "Fn::GetAtt": string[] })["Fn::GetAtt"].splice(1, 1, "Arnn"),
    ],
    [
      "a resource type that does not exist",
      lambda,
      /Unknown resource type/,
      (_, { Resources }) => {
        Resources.Odd = { Type: "AWS::Lambda::Funktion", Properties: {} };
      },
    ],
    [
      "an output of nothing",
      lambda,
      /'Nobody' does not reference/,
      (_, { Outputs = {} }) => {
        Outputs.Odd = { Value: { Ref: "Nobody" } };
      },
    ],
    [
      "a cycle",
      lambda,
      /Circular Dependencies/,
      (it, { Resources }) => {
        const [role = ""] = (it.Role as { "Fn::GetAtt": string[] })["Fn::GetAtt"];
        const [id] = Object.entries(Resources).find(([, { Properties }]) => Properties === it) ?? [];
        Object.assign(Resources[role] ?? {}, { DependsOn: [id] });
      },
    ],
    [
      "a policy that neither allows nor denies",
      "AWS::IAM::Policy",
      /'Alow' is not one of/,
      (it) => ((it.PolicyDocument as { Statement: Properties[] }).Statement[0] = { Effect: "Alow" }),
    ],
  ];
  test.each(mistakes)("finds %s", (_, type, problem, mistake) => {
    expect(templateProblems(withMistake(type, mistake)).join("\n")).toMatch(problem);
  });
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
