import { ManualClock } from "@leasehold/client/testing";
import type { StateMachineEvent } from "../../tools/local/src/state-machines/events.ts";
import { StateMachines } from "../../tools/local/src/state-machines/state-machines.ts";
import type { ServiceCall } from "../../tools/local/src/state-machines/task.ts";

export const machineArn = "arn:aws:states:eu-central-1:123456789012:stateMachine:test";

/** A state machine over a clock that the test moves. */
export interface Bench {
  readonly clock: ManualClock;
  readonly machines: StateMachines;
  readonly events: StateMachineEvent[];
  /** Starts the machine and lets it run as far as it can without time passing; gives the execution's ARN. */
  start(input?: unknown, name?: string): Promise<string>;
}

/** Defines one machine; `definition` without QueryLanguage is in JSONata. */
export function bench(definition: object, call: ServiceCall = async () => null): Bench {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const events: StateMachineEvent[] = [];
  const machines = new StateMachines({
    clock,
    call,
    random: () => 0.5,
    onEvent: (event) => events.push(event),
  });
  machines.define({
    arn: machineArn,
    name: "test",
    definition: { QueryLanguage: "JSONata", ...definition },
  });
  return {
    clock,
    machines,
    events,
    async start(input = {}, name) {
      const { executionArn } = machines.start({
        stateMachineArn: machineArn,
        input,
        ...(name === undefined ? {} : { name }),
      });
      await clock.advance(0);
      return executionArn;
    },
  };
}

/** A machine of one state, named S, that ends it unless it says otherwise. */
export function only(state: Record<string, unknown>): object {
  const ends = ["Succeed", "Fail", "Choice"].includes(String(state.Type)) || "Next" in state;
  return { StartAt: "S", States: { S: ends ? state : { ...state, End: true } } };
}
