// The operations of Step Functions and EventBridge, for service integrations and SDK clients alike.

import { StatesError } from "../state-machines/errors.ts";
import type { ExecutionDescription } from "../state-machines/events.ts";
import type { StateMachines } from "../state-machines/state-machines.ts";
import type { EventBus, PutEntry } from "./event-bus.ts";

/** The members of a request or of an answer. */
export type Members = Readonly<Record<string, unknown>>;

/** The operations of one service by their names, such as `StartExecution`. Times are Dates in what they give. */
export type Operations = Readonly<Record<string, (request: Members) => Members>>;

/**
 * The Step Functions API, with its own member names (`stateMachineArn`).
 *
 * Throws StatesError under the API's names, such as `ExecutionDoesNotExist`.
 */
export function stepFunctionsOperations(machines: StateMachines): Operations {
  return {
    StartExecution(request) {
      const name = optionalText(request, "name");
      const { executionArn, startDate } = machines.start({
        stateMachineArn: text(request, "stateMachineArn"),
        ...(name === undefined ? {} : { name }),
        input: json(request, "input", "InvalidExecutionInput"),
      });
      return { executionArn, startDate: new Date(startDate) };
    },
    DescribeExecution: (request) =>
      describe(
        machines.describe(text(request, "executionArn")),
        optionalText(request, "includedData") !== "METADATA_ONLY",
      ),
    ListExecutions: (request) => ({
      executions: machines
        .executions(optionalText(request, "stateMachineArn"))
        .map(({ executionArn, stateMachineArn, name, status, startDate, stopDate }) => ({
          executionArn,
          stateMachineArn,
          name,
          status,
          startDate: new Date(startDate),
          ...(stopDate === undefined ? {} : { stopDate: new Date(stopDate) }),
        })),
    }),
    // Only the events that the history keeps: each state that was entered.
    GetExecutionHistory: (request) => ({
      events: machines
        .history(text(request, "executionArn"))
        .entered.map(({ stateName, type, at, event }) => ({
          id: event,
          timestamp: new Date(at),
          type: `${type}StateEntered`,
          stateEnteredEventDetails: { name: stateName },
        })),
    }),
    StopExecution: (request) => ({
      stopDate: new Date(machines.stop(text(request, "executionArn"), failureOf(request)).stopDate),
    }),
    SendTaskSuccess(request) {
      machines.sendTaskSuccess(text(request, "taskToken"), json(request, "output", "InvalidOutput"));
      return {};
    },
    SendTaskFailure(request) {
      machines.sendTaskFailure(text(request, "taskToken"), failureOf(request));
      return {};
    },
  };
}

/** The EventBridge API, as far as it puts events. */
export function eventBridgeOperations(bus: EventBus): Operations {
  return {
    PutEvents: ({ Entries }) => ({
      FailedEntryCount: 0,
      Entries: bus.put(Entries as readonly PutEntry[]).map((EventId) => ({ EventId })),
    }),
  };
}

/** An execution in the members of DescribeExecution; with its data, or with no more than its metadata. */
function describe(execution: ExecutionDescription, withData: boolean): Members {
  const { startDate, stopDate, redriveDate, input, output, ...rest } = execution;
  const metadata = {
    ...rest,
    startDate: new Date(startDate),
    ...(stopDate === undefined ? {} : { stopDate: new Date(stopDate) }),
    ...(redriveDate === undefined ? {} : { redriveDate: new Date(redriveDate) }),
  };
  if (!withData) return metadata;
  return {
    ...metadata,
    input: JSON.stringify(input),
    inputDetails: { included: true },
    ...(output === undefined ? {} : { output: JSON.stringify(output), outputDetails: { included: true } }),
  };
}

function text(request: Members, name: string): string {
  return optionalText(request, name) ?? missing(name);
}

function missing(name: string): never {
  throw new StatesError("ValidationException", `${name} is missing`);
}

function optionalText(request: Members, name: string): string | undefined {
  const value = request[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new StatesError("ValidationException", `${name} must be a string`);
  return value;
}

/** The API has JSON as text; a state machine may give the value itself. */
function json(request: Members, name: string, errorName: string): unknown {
  const value = request[name];
  if (value === undefined) return {};
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    throw new StatesError(errorName, `${name} is not JSON`);
  }
}

function failureOf(request: Members): { readonly error?: string; readonly cause?: string } {
  const error = optionalText(request, "error");
  const cause = optionalText(request, "cause");
  return { ...(error === undefined ? {} : { error }), ...(cause === undefined ? {} : { cause }) };
}
