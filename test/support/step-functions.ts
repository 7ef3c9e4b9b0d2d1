import type { Item } from "@leasehold/client";
import { type ItemKey, leaseItemKey } from "@leasehold/client/schema";
import { type ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { StatesError } from "../../packages/local/src/state-machines/errors.ts";
import { StateMachines } from "../../packages/local/src/state-machines/state-machines.ts";

type Wire = Record<string, { readonly S?: string; readonly N?: string }>;

interface Write {
  readonly Key: Wire;
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Wire;
}

/** The ARN of a state machine of the tests. */
export function machineArn(name: string): string {
  return `arn:aws:states:us-east-1:123456789012:stateMachine:${name}`;
}

/** A definition as it is deployed: the partition is the only value that CloudFormation fills in. */
export function deployed(definition: unknown): unknown {
  return JSON.parse(JSON.stringify(definition).replaceAll(/\$\{Token\[AWS\.Partition\.\d+\]\}/g, "aws"));
}

/**
 * Step Functions and a table in memory, on one clock that the test moves.
 *
 * `fail` makes the next calls of a service fail before they arrive, `loseAnswers` after they took effect.
 */
export class StepFunctions {
  readonly store = new MemoryLeaseStore("leases");
  readonly machines: StateMachines;
  /** Every call of a service, such as `dynamodb:updateItem`, in order. */
  readonly calls: string[] = [];
  readonly #plans: {
    action: string;
    times: number;
    /** Undefined where the call just takes place. */
    error: string | undefined;
    lands: boolean;
    happen?: () => void;
  }[] = [];
  /** What other resources answer. */
  readonly resources = new Map<string, (args: never) => unknown>();

  constructor(clock: ManualClock) {
    this.machines = new StateMachines({
      clock,
      random: () => 0.5,
      call: (resource, args) => this.#call(resource, args),
    });
  }

  define(name: string, definition: unknown): string {
    this.machines.define({ arn: machineArn(name), name, definition: deployed(definition) });
    return machineArn(name);
  }

  fail(action: string, times: number, error = "DynamoDb.InternalServerErrorException"): void {
    this.#plans.push({ action, times, error, lands: false });
  }

  loseAnswers(action: string, times: number, after = 0): void {
    if (after > 0) this.#plans.push({ action, times: after, error: undefined, lands: true });
    this.#plans.push({ action, times, error: "DynamoDb.SdkClientException", lands: true });
  }

  /** Calls back when the next call of a service has taken effect. */
  afterwards(action: string, happen: () => void): void {
    this.#plans.push({ action, times: 1, error: undefined, lands: true, happen });
  }

  /** Writes an item as somebody else might. */
  put({ pk, sk, ...attributes }: Item & ItemKey): void {
    const names = Object.fromEntries(Object.keys(attributes).map((name) => [`#${name}`, name]));
    const values = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:${name}`, value]));
    const update = `SET ${Object.keys(attributes)
      .map((name) => `#${name} = :${name}`)
      .join(", ")}`;
    const condition = "attribute_exists(#pk) OR attribute_not_exists(#pk)";
    this.store.updateNow({
      key: { pk, sk },
      update,
      condition,
      names: { ...names, "#pk": "pk" },
      values,
      returnsItem: false,
    });
  }

  lease(key: string): Item | undefined {
    return this.store.peek(leaseItemKey(key));
  }

  async waiters(): Promise<readonly Item[]> {
    const request = {
      filter: "begins_with(#sk, :waiter)",
      names: { "#sk": "sk" },
      values: { ":waiter": "waiter#" },
    };
    const call = { signal: new AbortController().signal, isCurrent: () => true };
    return (await this.store.scan(request, call)).items;
  }

  async #call(resource: string, args: unknown): Promise<unknown> {
    const action = resource.replace("arn:aws:states:::", "").replace("aws-sdk:", "");
    this.calls.push(action);
    const plan = this.#plans.find((candidate) => candidate.action === action && candidate.times > 0);
    if (plan !== undefined) plan.times -= 1;
    const error = plan?.error;
    if (error !== undefined && plan?.lands === false) throw new StatesError(error, "as the test wants it");
    const result = this.#perform(action, args);
    plan?.happen?.();
    if (error !== undefined) throw new StatesError(error, "the answer was lost");
    return await result;
  }

  #perform(action: string, args: unknown): unknown {
    switch (action) {
      case "dynamodb:updateItem":
        return this.#update(args as Write);
      case "dynamodb:getItem": {
        const item = this.store.peek(plain((args as Write).Key) as unknown as ItemKey);
        return item === undefined ? {} : { Item: wire(item) };
      }
      case "dynamodb:transactWriteItems.waitForTaskToken":
        return this.#transact(args as { TransactItems: { ConditionCheck?: Write; Update?: Write }[] });
      case "sfn:startExecution": {
        const { StateMachineArn, Name, Input } = args as Record<string, string>;
        return this.#asSdk(() => {
          const input: unknown = JSON.parse(String(Input));
          const name = Name === undefined ? {} : { name: Name };
          const { executionArn } = this.machines.start({
            stateMachineArn: String(StateMachineArn),
            ...name,
            input,
          });
          return { ExecutionArn: executionArn };
        });
      }
      case "sfn:describeExecution":
        return this.#asSdk(() => {
          const { ExecutionArn } = args as Record<string, string>;
          return { Status: this.machines.describe(String(ExecutionArn)).status };
        });
      case "sfn:stopExecution":
        return this.#asSdk(() => {
          const { ExecutionArn, Error: error = "", Cause: cause = "" } = args as Record<string, string>;
          return this.machines.stop(String(ExecutionArn), { error, cause });
        });
      default: {
        const answer = this.resources.get(action);
        if (answer === undefined) throw new Error(`no such resource in this test: ${action}`);
        return answer(args as never);
      }
    }
  }

  #update(write: Write): unknown {
    const { applied, item } = this.store.updateNow({
      key: plain(write.Key) as unknown as ItemKey,
      update: write.UpdateExpression ?? "",
      condition: write.ConditionExpression ?? "attribute_exists(#any) OR attribute_not_exists(#any)",
      names: {
        ...write.ExpressionAttributeNames,
        ...(write.ConditionExpression === undefined ? { "#any": "any" } : {}),
      },
      values: plain(write.ExpressionAttributeValues ?? {}),
      returnsItem: true,
    });
    if (!applied) throw new StatesError("DynamoDb.ConditionalCheckFailedException", "refused");
    return { Attributes: wire(item ?? {}) };
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

  #asSdk<T>(perform: () => T): T {
    try {
      return perform();
    } catch (error) {
      if (error instanceof StatesError) throw new StatesError(`Sfn.${error.error}Exception`, error.cause);
      throw error;
    }
  }
}

function plain(attributes: Wire): Item {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, { S, N }]) => [name, S ?? Number(N)]),
  ) as Item;
}

function wire(item: Item): Wire {
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [
      name,
      typeof value === "number" ? { N: String(value) } : { S: value },
    ]),
  );
}
