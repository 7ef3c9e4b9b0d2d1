import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { Clock, Item } from "@leasehold/client";
import { type ItemKey, leaseItemKey } from "@leasehold/client/schema";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import type { Template } from "aws-cdk-lib/assertions";
import type { Json } from "../../packages/cdk/src/workflow/asl.ts";
import type { WorkflowTerms } from "../../packages/cdk/src/workflow/workflow-terms.ts";
import {
  callStepFunctions,
  createIntegrations,
  type IntegrationPorts,
} from "../../tools/local/src/services/integrations.ts";
import {
  type Members,
  type Operations,
  stepFunctionsOperations,
} from "../../tools/local/src/services/operations.ts";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import type { StateMachineListener } from "../../tools/local/src/state-machines/events.ts";
import {
  StateMachines,
  type StateMachinesOptions,
} from "../../tools/local/src/state-machines/state-machines.ts";
import { definitionsIn } from "./definitions.ts";
import { wakeAt } from "./stream-wakes.ts";

type Wire = ReturnType<typeof marshall>;

interface Write {
  readonly Key: Wire;
  readonly ProjectionExpression?: string;
  readonly ReturnValues?: string;
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Wire;
}

/** What becomes of the next calls of an action. */
interface Plan {
  readonly action: string;
  times: number;
  /** Empty for one that hangs. */
  readonly error: string;
  readonly cause: string;
  readonly lands: boolean;
  /** How long after its effect the answer comes. */
  readonly lateByMs?: number;
}

/** What Step Functions in memory is made of. */
export interface StepsWorld extends Pick<StateMachinesOptions, "uuid" | "random" | "transitionMs"> {
  /** Another one than the `store`. */
  readonly table?: Pick<MemoryLeaseStore, "updateNow" | "peek">;
}

/** The ARN of a state machine of the tests. */
export function machineArn(name: string): string {
  return `arn:aws:states:us-east-1:123456789012:stateMachine:${name}`;
}

/** The member of an execution's input that names the execution which has started it. */
export const startedBy = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID";

/** The terms of a leased workflow, with a lease of 9 s on the table "leases", and what a test wants otherwise. */
export function workflowTerms(work: Json, more: Partial<WorkflowTerms> = {}): WorkflowTerms {
  return {
    tableName: "leases",
    key: "$states.input.key",
    leaseDurationMs: 9_000,
    clockSkewMs: 1_000,
    retentionMs: 604_800_000,
    lockAtLeastForMs: 0,
    whenHeld: "fail",
    waitMs: 3_600_000,
    once: false,
    keeperArn: machineArn("keeper"),
    work,
    ...more,
  };
}

/** A definition as it is deployed: the partition is the only value that CloudFormation fills in. */
export function deployed(definition: unknown): unknown {
  return JSON.parse(JSON.stringify(definition).replaceAll(/\$\{Token\[AWS\.Partition\.\d+\]\}/g, "aws"));
}

/** More calls than any test makes at one moment. */
const mostAtOnce = 2_000;
/** Runs another machine of the same world, unless a test answers for it. */
const child = "states:startExecution.sync:2";

/**
 * Step Functions and a table in memory, on one clock that the test moves.
 *
 * `fail` makes the next calls of a service fail before they arrive, `loseAnswers` after they took effect. `heal` ends both.
 */
export class StepFunctions {
  readonly store = new MemoryLeaseStore("leases");
  readonly machines: StateMachines;
  /** Every call of a service, such as `dynamodb:updateItem`, in order. */
  readonly calls: string[] = [];
  readonly #plans: Plan[] = [];
  /** The calls of the present moment. */
  #moment = { at: 0, calls: 0 };
  readonly #clock: Clock;
  readonly #stepFunctions: Operations;
  readonly #table: Pick<MemoryLeaseStore, "updateNow" | "peek">;
  /** What other resources answer; the signal aborts when their task is stopped. */
  readonly resources = new Map<string, (args: never, signal: AbortSignal) => unknown>();

  /**
   * @param onEvent hears what EventBridge would be told, and more
   * @param world what a test wants otherwise
   */
  constructor(clock: Clock, onEvent?: StateMachineListener, world: StepsWorld = {}) {
    const { table, ...chance } = world;
    this.#clock = clock;
    this.#table = table ?? this.store;
    this.machines = new StateMachines({
      clock,
      random: () => 0.5,
      ...chance,
      ...(onEvent === undefined ? {} : { onEvent }),
      call: (resource, args, { signal }) =>
        resource.endsWith(`:${child}`) && !this.resources.has(child)
          ? this.#runChild(resource, args, signal)
          : this.call(resource, args, signal),
    });
    this.#stepFunctions = stepFunctionsOperations(this.machines);
  }

  define(name: string, definition: unknown): string {
    this.machines.define({ arn: machineArn(name), name, definition: deployed(definition) });
    return machineArn(name);
  }

  /** Defines all machines of a template; gives the ARN of the one whose logical id begins so. */
  deploy(template: Template): (id: string) => string {
    const definitions = definitionsIn(template);
    for (const [id, definition] of Object.entries(definitions)) this.define(id, definition);
    return (start) => machineArn(Object.keys(definitions).find((id) => id.startsWith(start)) ?? start);
  }

  fail(
    action: string,
    times: number,
    error = "DynamoDb.InternalServerErrorException",
    cause = "as the test wants it",
  ): void {
    this.#plans.push({ action, times, error, cause, lands: false });
  }

  /** Makes the next calls of a service neither arrive nor come back. */
  hang(action: string, times: number): void {
    this.#plans.push({ action, times, error: "", cause: "", lands: false });
  }

  loseAnswers(action: string, times: number): void {
    const [error, cause] = ["DynamoDb.SdkClientException", "the answer was lost"];
    this.#plans.push({ action, times, error, cause, lands: true });
  }

  /** Makes the next calls of a service take effect at once, and their answers come later. */
  answerLate(action: string, times: number, lateByMs: number): void {
    this.#plans.push({ action, times, error: "", cause: "", lands: true, lateByMs });
  }

  /** Lets every call go through again. */
  heal(): void {
    this.#plans.length = 0;
  }

  lease(key: string): Item | undefined {
    return this.#table.peek(leaseItemKey(key));
  }

  /** Does what the stream and the waking function do when a lock was released. */
  async wake(key: string): Promise<void> {
    const after = { ...leaseItemKey(key) };
    await wakeAt(this.store, [{ before: { ...after, token: "released" }, after }], (waiter) => {
      try {
        this.machines.sendTaskSuccess("taskToken" in waiter ? waiter.taskToken : "", {});
        return true;
      } catch {
        // This one is not waiting any more.
        return false;
      }
    });
  }

  /** Makes one call of a service. */
  protected async call(resource: string, args: unknown, signal: AbortSignal): Promise<unknown> {
    const action = resource.replace("arn:aws:states:::", "").replace("aws-sdk:", "");
    this.calls.push(action);
    this.#checkPauses();
    const plan = this.#plans.find((candidate) => candidate.action === action && candidate.times > 0);
    if (plan !== undefined) plan.times -= 1;
    if (plan?.lateByMs !== undefined) {
      const result = await this.perform(action, args, signal);
      await new Promise<void>((resolve) => this.#clock.schedule(resolve, plan.lateByMs ?? 0));
      return result;
    }
    if (plan?.error === "") return new Promise<never>(() => {});
    if (plan !== undefined && !plan.lands) throw new StatesError(plan.error, plan.cause);
    const result = this.perform(action, args, signal);
    if (plan !== undefined) throw new StatesError(plan.error, plan.cause);
    return await result;
  }

  /** A machine that loops without a pause would stop the clock, and no test would end. */
  #checkPauses(): void {
    const { at, calls } = this.#moment;
    const now = this.#clock.now();
    if (calls <= mostAtOnce) this.#moment = at === now ? { at, calls: calls + 1 } : { at: now, calls: 1 };
    else throw new StatesError("States.Runtime", `${mostAtOnce} calls without a pause`);
  }

  /** What a call does that arrives. */
  protected perform(action: string, args: unknown, signal: AbortSignal): unknown {
    const [, operation] = /^sfn:(\w+)/.exec(action) ?? [];
    if (operation !== undefined) return callStepFunctions(this.#stepFunctions, operation, args as Members);
    switch (action) {
      case "dynamodb:updateItem":
        return this.#update(args as Write);
      case "dynamodb:getItem": {
        const { Key, ProjectionExpression, ExpressionAttributeNames } = args as Write;
        const item = this.#table.peek(unmarshall(Key) as ItemKey);
        if (item === undefined) return {};
        return { Item: marshall(projected(item, ProjectionExpression, ExpressionAttributeNames)) };
      }
      case "dynamodb:transactWriteItems.waitForTaskToken":
        return this.#transact(args as { TransactItems: { ConditionCheck?: Write; Update?: Write }[] });
      default: {
        const answer = this.resources.get(action);
        if (answer === undefined) throw new Error(`no such resource in this test: ${action}`);
        return answer(args as never, signal);
      }
    }
  }

  /** As the local run of the app does it. */
  async #runChild(resource: string, args: unknown, signal: AbortSignal): Promise<unknown> {
    const ports = { machines: this.machines, stepFunctions: this.#stepFunctions };
    return await createIntegrations(ports as IntegrationPorts)(resource, args, signal);
  }

  #update(write: Write): unknown {
    const { applied, item } = this.#table.updateNow({
      key: unmarshall(write.Key) as ItemKey,
      update: write.UpdateExpression ?? "",
      condition: write.ConditionExpression ?? "attribute_exists(#any) OR attribute_not_exists(#any)",
      names: {
        ...write.ExpressionAttributeNames,
        ...(write.ConditionExpression === undefined ? { "#any": "any" } : {}),
      },
      values: unmarshall(write.ExpressionAttributeValues ?? {}),
      returnsItem: true,
    });
    if (!applied) throw new StatesError("DynamoDb.ConditionalCheckFailedException", "refused");
    const { ReturnValues = "NONE", UpdateExpression = "", ExpressionAttributeNames } = write;
    if (ReturnValues === "NONE") return {};
    if (ReturnValues === "ALL_NEW") return { Attributes: marshall(item ?? {}) };
    const assigned = [...UpdateExpression.replace(/REMOVE.*/, "").matchAll(/(#\w+) =/g)].map(
      ([, name]) => name,
    );
    return { Attributes: marshall(projected(item ?? {}, assigned.join(", "), ExpressionAttributeNames)) };
  }

  #transact({ TransactItems }: { TransactItems: { ConditionCheck?: Write; Update?: Write }[] }): unknown {
    try {
      for (const { ConditionCheck, Update } of TransactItems) {
        if (ConditionCheck !== undefined) {
          const names = { ...ConditionCheck.ExpressionAttributeNames, "#nothing": "nothing" };
          this.#update({
            ...ConditionCheck,
            UpdateExpression: "REMOVE #nothing",
            ExpressionAttributeNames: names,
          });
        }
        if (Update !== undefined) this.#update(Update);
      }
      return {};
    } catch {
      throw new StatesError("DynamoDb.TransactionCanceledException", "refused");
    }
  }
}

/** What is asked for of an item, as DynamoDB gives it. */
function projected(
  item: Item,
  projection: string | undefined,
  names: Readonly<Record<string, string>> = {},
): Item {
  if (projection === undefined) return item;
  const wanted = projection.split(", ").map((placeholder) => names[placeholder]);
  return Object.fromEntries(Object.entries(item).filter(([name]) => wanted.includes(name)));
}
