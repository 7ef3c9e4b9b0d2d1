// Connects the state machines with the services that their tasks call, and with the event bus.

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "@leasehold/client";
import type { AppSpec } from "../assembly/types.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { IntegrationError } from "../services/errors.ts";
import type { EventBus } from "../services/event-bus.ts";
import { createIntegrations, type Integration } from "../services/integrations.ts";
import { eventBridgeOperations, type Operations, stepFunctionsOperations } from "../services/operations.ts";
import { StatesError } from "../state-machines/errors.ts";
import { StateMachines } from "../state-machines/state-machines.ts";
import { statusEvent } from "../state-machines/status-event.ts";
import type { LocalAppListener } from "./events.ts";

/** What the state machines call, and where they report. */
export interface MachinesSetup {
  readonly spec: AppSpec;
  readonly clock: Clock;
  readonly dynamodb: DynamoDBClient;
  readonly lambda: LambdaRuntime;
  readonly bus: EventBus;
  readonly publish: LocalAppListener;
}

/** The state machines of an app, and the operations of the services that know of them. */
export interface AppMachines {
  readonly machines: StateMachines;
  readonly operations: {
    readonly stepFunctions: Operations;
    readonly eventBridge: Operations;
  };
}

/** Defines every state machine of the template. Rejects with InvalidDefinitionError for what cannot be run here. */
export function startMachines(setup: MachinesSetup, cleanups: AsyncDisposableStack): AppMachines {
  const { spec, clock, dynamodb, lambda, publish } = setup;
  // Tasks start executions themselves, so each needs the other.
  const wiring: { perform?: Integration } = {};
  const machines: StateMachines = new StateMachines({
    clock,
    onEvent(execution) {
      publish({ type: "execution", execution });
      if (execution.type !== "started" && execution.type !== "finished") return;
      setup.bus.publish(statusEvent(machines.describe(execution.executionArn)));
    },
    async call(resource, args, { signal }) {
      try {
        return await wiring.perform?.(resource, args, signal);
      } catch (error) {
        throw error instanceof IntegrationError ? new StatesError(error.error, error.cause) : error;
      }
    },
  });
  cleanups.defer(() => machines.close());
  const operations = {
    stepFunctions: stepFunctionsOperations(machines),
    eventBridge: eventBridgeOperations(setup.bus),
  };
  wiring.perform = createIntegrations({
    dynamodb,
    lambda,
    machines,
    ...operations,
  });
  for (const { arn, name, definition } of spec.stateMachines) machines.define({ arn, name, definition });
  return { machines, operations };
}
