import { expect, it } from "vitest";
import { eventRules } from "../src/services/event-bus.ts";
import { statusEvent } from "../src/state-machines/events.ts";

it("a rule hands the event of an execution's status on in EventBridge's own form, with the input as text", () => {
  const sent: unknown[] = [];
  const rule = {
    ...{ stack: "Test", logicalId: "Rule", path: "Test/Rule", name: "rule", arn: "arn" },
    pattern: { source: ["aws.states"], detail: { status: ["ABORTED"] } },
    targets: [{ arn: "target", template: undefined, paths: {} }],
  };
  const onError = (_: unknown, error: unknown): never => {
    throw error;
  };
  const tell = eventRules([rule], { send: (_, input) => sent.push(JSON.parse(input)), onError });
  const execution = {
    executionArn: "arn:aws:states:eu-central-1:123456789012:execution:work:x",
    stateMachineArn: "arn:aws:states:eu-central-1:123456789012:stateMachine:work",
    name: "x",
    status: "ABORTED",
    startDate: "2026-01-01T00:00:00.000Z",
    stopDate: "2026-01-01T00:00:01.000Z",
    input: { key: "import" },
    error: "Operator",
    redriveCount: 0,
  } as const;
  tell(statusEvent(execution));
  tell(statusEvent({ ...execution, status: "SUCCEEDED" }));
  const { executionArn, stateMachineArn } = execution;
  expect(sent).toEqual([
    {
      ...{ version: "0", id: expect.any(String), source: "aws.states" },
      "detail-type": "Step Functions Execution Status Change",
      ...{ account: "123456789012", region: "eu-central-1", resources: [executionArn] },
      time: expect.stringMatching(/^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      detail: {
        ...{ executionArn, stateMachineArn, name: "x", status: "ABORTED", redriveCount: 0 },
        ...{ startDate: 1_767_225_600_000, stopDate: 1_767_225_601_000, error: "Operator", cause: null },
        ...{ input: '{"key":"import"}', inputDetails: { included: true } },
        ...{ output: null, outputDetails: null },
      },
    },
  ]);
});
