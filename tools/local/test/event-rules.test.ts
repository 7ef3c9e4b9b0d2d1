import { expect, it } from "vitest";
import type { JsonObject } from "../src/assembly/types.ts";
import { EventBus, eventRules } from "../src/services/event-bus.ts";
import { statusEvent } from "../src/state-machines/events.ts";

/** A bus with one rule; `sent` is what its target gets. */
function busWith(pattern: JsonObject): { readonly bus: EventBus; readonly sent: unknown[] } {
  const sent: unknown[] = [];
  const bus = new EventBus(() => Date.UTC(2026, 0, 1));
  const rule = {
    ...{ stack: "Test", logicalId: "Rule", path: "Test/Rule", name: "rule" },
    arn: "arn:aws:events:eu-central-1:123456789012:rule/rule",
    pattern,
    targets: [{ arn: "target", template: undefined, paths: {} }],
  };
  const send = (_: string, input: string): number => sent.push(JSON.parse(input));
  const onError = (_: unknown, error: unknown): never => {
    throw error;
  };
  bus.subscribe(eventRules([rule], { send, onError }));
  return { bus, sent };
}

it("a rule hands an event on in EventBridge's own form, and leaves those of another source or another bus alone", () => {
  const { bus, sent } = busWith({ source: ["shop"] });
  const entry = { Source: "shop", DetailType: "Order", Detail: '{"id":7,"note":"a \\"b\\""}' };
  bus.put([entry, { ...entry, Source: "elsewhere" }, { ...entry, EventBusName: "own" }]);
  expect(sent).toEqual([
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
  ]);
});

it("the event of an execution's status comes from aws.states, with the input as text, and is not kept as one that was put", () => {
  const { bus, sent } = busWith({ source: ["aws.states"], detail: { status: ["ABORTED"] } });
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
  bus.publish(statusEvent(execution));
  bus.publish(statusEvent({ ...execution, status: "SUCCEEDED" }));
  expect(bus.events).toEqual([]);
  const { executionArn, stateMachineArn } = execution;
  expect(sent).toMatchObject([
    {
      "detail-type": "Step Functions Execution Status Change",
      resources: [executionArn],
      detail: {
        ...{ executionArn, stateMachineArn, status: "ABORTED", error: "Operator", output: null },
        ...{ input: '{"key":"import"}', inputDetails: { included: true } },
      },
    },
  ]);
});
