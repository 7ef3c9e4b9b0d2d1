// The operations of Step Functions and EventBridge, for service integrations and SDK clients alike.

import { described, type ExecutionDescription } from "../state-machines/events.ts";
import type { StateMachines } from "../state-machines/state-machines.ts";
import { type BusEvent, busEvent, type PutEntry } from "./event-bus.ts";

/** The members of a request or of an answer. */
export type Members = Readonly<Record<string, unknown>>;

/** The operations of one service by their names, such as `StartExecution`. Times are Dates in what they give. */
export type Operations = Readonly<Record<string, { answer(request: Members): Members }["answer"]>>;

/** A request of Step Functions, as its SDK clients and state machines write it. */
type StatesRequest = {
  readonly stateMachineArn: string;
  readonly executionArn: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly includedData?: string;
  readonly taskToken: string;
  readonly output: unknown;
  readonly error?: string;
  readonly cause?: string;
};

/**
 * The Step Functions API, with its own member names (`stateMachineArn`).
 *
 * Throws StatesError under the API's names, such as `ExecutionDoesNotExist`.
 */
export function stepFunctionsOperations(machines: StateMachines): Operations {
  return {
    StartExecution({ stateMachineArn, name, input }: StatesRequest) {
      const started = { stateMachineArn, name, input: parsed(input) };
      const { executionArn, startDate } = machines.start(started);
      return { executionArn, startDate: new Date(startDate) };
    },
    DescribeExecution({ executionArn, includedData }: StatesRequest) {
      const all = shown(machines.describe(executionArn));
      const { input, output, inputDetails, outputDetails, ...metadata } = all;
      return includedData === "METADATA_ONLY" ? metadata : all;
    },
    ListExecutions: ({ stateMachineArn }: StatesRequest) => ({
      executions: machines.executions(stateMachineArn).map(shown),
    }),
    // Only the events that the history keeps: each state that was entered.
    GetExecutionHistory: ({ executionArn }: StatesRequest) => ({
      events: machines.history(executionArn).entered.map(({ stateName, type, at, event }) => ({
        id: event,
        timestamp: new Date(at),
        type: `${type}StateEntered`,
        stateEnteredEventDetails: { name: stateName },
      })),
    }),
    StopExecution: ({ executionArn, error, cause }: StatesRequest) => ({
      stopDate: new Date(machines.stop(executionArn, { error, cause }).stopDate),
    }),
    SendTaskSuccess({ taskToken, output }: StatesRequest) {
      machines.sendTaskSuccess(taskToken, parsed(output));
      return {};
    },
    SendTaskFailure({ taskToken, error, cause }: StatesRequest) {
      machines.sendTaskFailure(taskToken, { error, cause });
      return {};
    },
  };
}

/** The EventBridge API, as far as it puts events, which are kept. */
export function eventBridgeOperations(events: BusEvent[]): Operations {
  return {
    PutEvents({ Entries }: { readonly Entries: readonly PutEntry[] }) {
      events.push(...Entries.map(busEvent));
      return { FailedEntryCount: 0, Entries: Entries.map(() => ({ EventId: crypto.randomUUID() })) };
    },
  };
}

function shown(execution: ExecutionDescription): Members {
  return described(execution, (time) => new Date(time));
}

/** The API has JSON as text; a state machine may give the value itself. */
function parsed(json: unknown): unknown {
  return typeof json === "string" ? JSON.parse(json) : json;
}
