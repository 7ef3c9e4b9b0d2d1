// What a user may decide of a leased workflow's state machine: its name, its role and its key.

import { SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { App, Duration, type Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { type IRole, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import {
  CustomerManagedEncryptionConfiguration,
  DefinitionBody,
  StateMachine,
} from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { describe, expect, test } from "vitest";
import {
  env,
  functionIn,
  newStack,
  only,
  permitted,
  type Statement,
  statementsIn,
  textOf,
  workflowIn,
} from "../support/constructs.ts";

const machineType = "AWS::StepFunctions::StateMachine";
const states = (rest: string) => `arn:${"<AWS::Partition>"}:states:eu-west-1:111122223333:${rest}`;

describe("a state machine's own name", () => {
  const stateMachineName = "acme-prod-import";

  test("is given to the state machine, and known to its keeper, by itself and no wider", () => {
    const stack = newStack();
    workflowIn(stack, { stateMachineName });
    const template = Template.fromStack(stack);
    template.hasResourceProperties(machineType, { StateMachineName: stateMachineName });
    expect(permitted(template, /^LeaseholdHeartbeat\w{8}Guarding/)).toEqual(
      expect.arrayContaining([
        `states:DescribeExecution,states:StopExecution ${states(`execution:${stateMachineName}:*`)}`,
        `states:SendTaskSuccess,states:SendTaskFailure ${states(`stateMachine:${stateMachineName}`)}`,
      ]),
    );
    expect(permitted(template, /^LeaseholdHeartbeat\w{8}EndedStateMachineRole/)).toContain(
      `states:DescribeExecution,states:StopExecution ${states(`execution:${stateMachineName}:*`)}`,
    );
  });

  test("is what the schedule of a job may start, and nothing else", () => {
    const stack = newStack();
    const workflow = workflowIn(stack, { stateMachineName });
    const { table } = workflow.heartbeat;
    const schedule = ScheduleExpression.rate(Duration.hours(1));
    new SingletonJob(stack, "Job", { table, schedule, target: SingletonJobTarget.workflow(workflow) });
    const arn = stack.resolve(workflow.stateMachine.stateMachineArn);
    const starts = statementsIn(Template.fromStack(stack)).filter(
      ({ Action, Resource }) =>
        Action === "states:StartExecution" && JSON.stringify(Resource) === JSON.stringify(arn),
    );
    expect(starts).toHaveLength(1);
  });
});

describe("a role of the user's", () => {
  function trusted(stack: Stack): Role {
    return new Role(stack, "Own", { assumedBy: new ServicePrincipal("states.amazonaws.com") });
  }

  /** What a workflow needs, as its own role would have it. */
  const needed = [
    /^dynamodb:UpdateItem,/,
    /^states:StartExecution .*<LeaseholdHeartbeat/,
    /^lambda:InvokeFunction /,
    /^logs:CreateLogDelivery,/,
    /^xray:PutTraceSegments,/,
  ];

  const roles: [string, (app: App, stack: Stack) => IRole, RegExp][] = [
    ["of its stack", (_, stack) => trusted(stack), /^OwnDefaultPolicy/],
    ["of another stack", (app) => trusted(newStack({ env }, app, "Roles")), /^ImportRolePolicy/],
    [
      "that is defined elsewhere",
      (_, stack) => Role.fromRoleArn(stack, "Own", "arn:aws:iam::111122223333:role/Own"),
      /^OwnPolicy/,
    ],
  ];
  test.each(roles)("%s gets all that the workflow needs, in the workflow's stack", (_, make, policy) => {
    const app = new App();
    const stack = newStack({ env }, app);
    const work = new LambdaInvoke(stack, "Fetch", { lambdaFunction: functionIn(stack, "Fetcher") });
    const role = make(app, stack);
    const { stateMachine } = workflowIn(stack, { role, work });
    app.synth();
    const template = Template.fromStack(stack);
    const has = permitted(template, policy);
    for (const each of needed) expect(has).toContainEqual(expect.stringMatching(each));
    expect(template.findResources(machineType)).toHaveProperty([
      stack.getLogicalId(stateMachine.node.defaultChild as never),
      "Properties",
      "RoleArn",
    ]);
    // No role is made beside it.
    const own = Object.keys(template.findResources("AWS::IAM::Role"));
    expect(own.filter((id) => id.startsWith("ImportStateMachine"))).toEqual([]);
  });

  test("that does not let itself be changed is left as it is", () => {
    const stack = newStack();
    const role = Role.fromRoleArn(stack, "Own", "arn:aws:iam::111122223333:role/Own", { mutable: false });
    workflowIn(stack, { role });
    const template = Template.fromStack(stack);
    template.hasResourceProperties(machineType, { RoleArn: "arn:aws:iam::111122223333:role/Own" });
    for (const { Properties } of Object.values(template.findResources("AWS::IAM::Policy"))) {
      expect(Properties.Roles).not.toContain("Own");
    }
  });
});

describe("a key of the user's", () => {
  test("encrypts the workflow, whose role alone may use it, for this state machine only", () => {
    const stack = newStack();
    const key = new Key(stack, "Key");
    const encryptionConfiguration = new CustomerManagedEncryptionConfiguration(key, Duration.minutes(1));
    const { stateMachine } = workflowIn(stack, { encryptionConfiguration });
    const template = Template.fromStack(stack);
    template.hasResourceProperties(machineType, {
      EncryptionConfiguration: {
        KmsKeyId: stack.resolve(key.keyArn),
        KmsDataKeyReusePeriodSeconds: 60,
        Type: "CUSTOMER_MANAGED_KMS_KEY",
      },
    });
    const machine = only(
      template.findResources(machineType, { Properties: { EncryptionConfiguration: Match.anyValue() } }),
    );
    const usesKey = ({ Action }: Statement): boolean =>
      [Action].flat().some((each) => each.startsWith("kms:"));
    const role = stack.getLogicalId(stateMachine.role.node.defaultChild as never).slice(0, -8);
    const uses = statementsIn(template, new RegExp(`^${role}`)).filter(usesKey);
    expect(statementsIn(template).filter(usesKey)).toEqual(uses);
    const decrypts = uses.find(({ Action }) => Action.includes("kms:Decrypt"));
    const context = decrypts?.Condition?.StringEquals?.["kms:EncryptionContext:aws:states:stateMachineArn"];
    expect(textOf(context)).toBe(states(`stateMachine:${machine.Properties.StateMachineName}`));
  });

  test("lets another machine whose state the workflow is decrypt its output, and no other machine's", () => {
    const stack = newStack();
    const key = new Key(stack, "Key");
    const encryptionConfiguration = new CustomerManagedEncryptionConfiguration(key);
    const workflow = workflowIn(stack, { encryptionConfiguration });
    const definitionBody = DefinitionBody.fromChainable(workflow.asState(stack, "Part"));
    new StateMachine(stack, "Outer", { definitionBody });
    const stateMachineArn = stack.resolve(workflow.stateMachine.stateMachineArn);
    expect(statementsIn(Template.fromStack(stack), /^Outer/)).toContainEqual({
      Effect: "Allow",
      Action: "kms:Decrypt",
      Resource: stack.resolve(key.keyArn),
      Condition: { StringEquals: { "kms:EncryptionContext:aws:states:stateMachineArn": stateMachineArn } },
    });
  });
});
