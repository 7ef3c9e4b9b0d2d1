import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { StepFunctions } from "../../test/support/step-functions.ts";

/** What one beat of a keeper takes. */
export interface BeatCost {
  readonly guards: string;
  readonly transitions: number;
  readonly writes: number;
  /** How often it asks Step Functions about what it guards; an account's quota for that is small. */
  readonly descriptions: number;
  /** All other requests. */
  readonly rest: number;
}

const beats = 100;
const beatMs = 3_000;
const leaseDurationMs = 3 * beatMs;

/** Counts what the keeper's own definition does, on the interpreter of the local run and a clock that is set. */
export async function benchKeeper(): Promise<BeatCost[]> {
  return [
    await countBeats("an execution", (guarded) => ({ guarded })),
    await countBeats("a person or a container", () => ({ until: Number.MAX_SAFE_INTEGER })),
  ];
}

async function countBeats(guards: string, guard: (execution: string) => object): Promise<BeatCost> {
  const clock = new ManualClock();
  const steps = new StepFunctions(clock);
  const client = new LeaseClient({ store: steps.store, clock, owner: "holder", leaseDurationMs });
  const keeper = steps.define("keeper", keeperDefinition({ tableName: "leases", retentionMs: 604_800_000 }));
  const work = steps.define("work", {
    QueryLanguage: "JSONata",
    StartAt: "Long",
    States: { Long: { Type: "Wait", Seconds: 1_000_000, End: true } },
  });

  const { executionArn } = steps.machines.start({ stateMachineArn: work });
  const lease = await client.acquire("bench", { owner: `workflow:${executionArn}` });
  const input = { lease: lease.toJSON(), ...guard(executionArn) };
  const kept = steps.machines.start({ stateMachineArn: keeper, input }).executionArn;
  await clock.advance(beatMs);

  const entered = (): number => steps.machines.history(kept).entered.length;
  const before = entered();
  steps.calls.length = 0;
  await clock.advance(beats * beatMs);
  const count = (action: string): number => steps.calls.filter((call) => call === action).length;
  const [writes, descriptions] = [count("dynamodb:updateItem"), count("sfn:describeExecution")];
  return {
    guards,
    transitions: (entered() - before) / beats,
    writes: writes / beats,
    descriptions: descriptions / beats,
    rest: (steps.calls.length - writes - descriptions) / beats,
  };
}
