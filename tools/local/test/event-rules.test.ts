import { describe, expect, it } from "vitest";
import type { RuleSpec, RuleTargetSpec } from "../src/assembly/types.ts";
import { EventBus, eventRules } from "../src/services/event-bus.ts";
import { statusEvent } from "../src/state-machines/events.ts";

const target: RuleTargetSpec = {
  arn: "target",
  template: undefined,
  paths: {},
};

function ruleOf(more: Partial<RuleSpec>): RuleSpec {
  return {
    stack: "Test",
    logicalId: "Rule",
    path: "Test/Rule",
    name: "rule",
    arn: "arn:aws:events:eu-central-1:123456789012:rule/rule",
    pattern: { source: ["shop"] },
    targets: [target],
    ...more,
  };
}

/** A bus with one rule; gives what its targets get. */
function busWith(more: Partial<RuleSpec>): {
  bus: EventBus;
  sent: [string, unknown][];
  errors: unknown[];
  end: () => void;
} {
  const sent: [string, unknown][] = [];
  const errors: unknown[] = [];
  const bus = new EventBus(() => Date.UTC(2026, 0, 1));
  const send = (arn: string, input: string): void => {
    if (arn === "refuses") throw new Error("no such target");
    sent.push([arn, JSON.parse(input)]);
  };
  const end = bus.subscribe(eventRules([ruleOf(more)], { send, onError: (_, error) => errors.push(error) }));
  return { bus, sent, errors, end };
}

const entry = { Source: "shop", DetailType: "Order", Detail: '{"id":7,"note":"a \\"b\\""}' };

describe("a rule of the local run", () => {
  it("hands the event on in EventBridge's own form", () => {
    const { bus, sent } = busWith({});
    bus.put([entry]);
    expect(sent).toEqual([
      [
        "target",
        {
          version: "0",
          id: expect.any(String),
          "detail-type": "Order",
          source: "shop",
          account: "123456789012",
          time: "2026-01-01T00:00:00Z",
          region: "eu-central-1",
          resources: [],
          detail: { id: 7, note: 'a "b"' },
        },
      ],
    ]);
  });

  it.each([
    ["another source", { Source: "elsewhere" }],
    ["another bus", { EventBusName: "own" }],
  ])("leaves events of %s alone", (_, other) => {
    const { bus, sent } = busWith({});
    bus.put([{ ...entry, ...other }]);
    expect(sent).toEqual([]);
  });
});

describe("the event of an execution's status", () => {
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

  it("comes from aws.states, with the input as text, and is not kept as one that was put", () => {
    const { bus, sent } = busWith({ pattern: { source: ["aws.states"], detail: { status: ["ABORTED"] } } });
    bus.publish(statusEvent(execution));
    bus.publish(statusEvent({ ...execution, status: "SUCCEEDED" }));
    expect(bus.events).toEqual([]);
    expect(sent).toMatchObject([
      [
        "target",
        {
          "detail-type": "Step Functions Execution Status Change",
          resources: [execution.executionArn],
          detail: {
            executionArn: execution.executionArn,
            stateMachineArn: execution.stateMachineArn,
            status: "ABORTED",
            input: '{"key":"import"}',
            inputDetails: { included: true },
            output: null,
            error: "Operator",
          },
        },
      ],
    ]);
  });
});
