import { StatesError } from "../../../tools/local/src/state-machines/errors.ts";
import type { StateMachineEvent } from "../../../tools/local/src/state-machines/events.ts";
import { StepFunctions, type StepsWorld } from "../../support/step-functions.ts";
import type { World } from "../world.ts";

/** A call that gets no answer fails after so long, unless its state has a time limit. */
const cutOffMs = 60_000;

/** Step Functions whose calls of services fail, hang, get lost and come late, by chance. */
export class UnreliableSteps extends StepFunctions {
  readonly #world: World;
  /** How often, as a share of the calls. */
  trouble = 0;
  /** Whether all calls take effect at once, and at worst their answers are late. */
  isPrompt = false;
  /** For how long a description may still show an execution at work that has ended. */
  staleMs = 0;

  constructor(
    world: World,
    table: NonNullable<StepsWorld["table"]>,
    onEvent: (event: StateMachineEvent) => void,
    slowestMs: number,
  ) {
    let uuids = 0;
    const { random } = world;
    super(world.clock, onEvent, {
      table,
      uuid: () => `uuid ${++uuids}`,
      random: () => random.between(0, 999) / 1_000,
      transitionMs: () => (slowestMs === 0 ? 0 : random.between(0, slowestMs)),
    });
    this.#world = world;
  }

  protected override async call(resource: string, args: unknown, signal: AbortSignal): Promise<unknown> {
    const { random, clock } = this.#world;
    const isService = /:(aws-sdk:)?(dynamodb|sfn):/.test(resource);
    // A stop that fails for as long as the lease lasts is beyond what is promised.
    const isSafe = !isService || resource.includes("stopExecution");
    if (isSafe || !random.chance(this.trouble)) return await super.call(resource, args, signal);
    const what = this.isPrompt
      ? "answer late"
      : random.pick(
          resource.includes("sendTaskSuccess")
            ? (["refused", "cut off", "answer lost", "answer late", "arrives late"] as const)
            : (["refused", "cut off", "answer lost", "answer late"] as const),
        );
    this.#world.count(`call: ${what}`);
    this.#world.tell("service", () => `${resource}: ${what}`);
    if (what === "refused") throw new StatesError("DynamoDb.ThrottlingException", "too many requests");
    if (what === "arrives late") {
      // Ignored: nobody hears the answer any more.
      const arrive = (): void => void super.call(resource, args, signal).catch(() => undefined);
      clock.schedule(arrive, random.between(1_000, 30_000));
    }
    if (what === "cut off" || what === "arrives late") {
      await this.#pause(cutOffMs);
      throw new StatesError("States.TaskFailed", "no answer has come");
    }
    const result = await super.call(resource, args, signal);
    if (what === "answer lost") throw new StatesError("DynamoDb.SdkClientException", "the answer was lost");
    await this.#pause(random.between(100, 4_000));
    return result;
  }

  protected override perform(action: string, args: unknown, signal: AbortSignal): unknown {
    const result = super.perform(action, args, signal);
    if (action !== "sfn:describeExecution") return result;
    const { ExecutionArn } = args as { readonly ExecutionArn: string };
    const { status, stopDate } = this.machines.describe(ExecutionArn);
    const endedMsAgo =
      status === "RUNNING"
        ? Number.POSITIVE_INFINITY
        : this.#world.clock.now() - Date.parse(String(stopDate));
    if (endedMsAgo >= this.#world.random.between(0, this.staleMs)) return result;
    this.#world.count("a description is stale");
    return { ...(result as object), Status: "RUNNING" };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.schedule(resolve, ms);
    });
  }
}
