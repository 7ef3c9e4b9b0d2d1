import { BatchWriteCommand, type BatchWriteCommandInput } from "@aws-sdk/lib-dynamodb";
import type { LeaseHandle } from "@leasehold/client";
import type { ExecutionDescription } from "@leasehold/local";
import { doneKey, pendingKey, type TransferKind, transferKey } from "../../functions/import-orders/schema.ts";
import { type TestApp, until } from "./app.ts";

/** The app's workflow that imports or exports orders, under one lock, with a pause of 2 s between two chunks. */
const workflow = "Imports/Workflow/StateMachine";
const keepers = "Heartbeat/StateMachine";
const table = "Imports/Orders";

type WriteRequest = NonNullable<BatchWriteCommandInput["RequestItems"]>[string][number];

/** What a keeper is started with. */
interface KeeperInput {
  readonly guarded: string;
  readonly lease: LeaseHandle;
}

/** What the machine for ended executions is started with. */
interface EndedInput {
  readonly detail: { readonly executionArn: string };
}

/** The app's imports and exports: chunks to work on, the workflows that do it, and their keepers. */
export class Transfers {
  readonly #test: TestApp;

  constructor(test: TestApp) {
    this.#test = test;
  }

  /** Replaces whatever waits by so many chunks to import. */
  async seed(chunks: number): Promise<void> {
    const old = (await this.#test.items(table)).map(({ pk, sk }) => ({ DeleteRequest: { Key: { pk, sk } } }));
    const fresh = Array.from({ length: chunks }, (_, index) => {
      const chunk = `chunk-${index}`;
      const orders = [{ orderId: `${chunk}/0`, product: "mug", quantity: 1 }];
      return { PutRequest: { Item: { ...pendingKey("import", chunk), orders } } };
    });
    await this.#write(old);
    await this.#write(fresh);
  }

  /** Starts a workflow and gives its ARN. */
  start(kind: TransferKind = "import"): string {
    return this.#test.app.startExecution(workflow, { kind }).executionArn;
  }

  /** Starts a workflow that has more to do than it will come to, and resolves in the middle of its work. */
  async startLong(): Promise<string> {
    await this.seed(20);
    const arn = this.start();
    await this.#test.entered(arn, "Pause");
    return arn;
  }

  /** How many chunks were imported. */
  async done(): Promise<number> {
    const { pk } = doneKey("import", "");
    return (await this.#test.items(table)).filter((item) => item.pk === pk).length;
  }

  /** The keeper that guards a workflow. */
  async keeperOf(guarded: string): Promise<{ readonly arn: string; readonly lease: LeaseHandle }> {
    const find = (): ExecutionDescription | undefined =>
      this.#test.app.executions(keepers).find(({ input }) => (input as KeeperInput).guarded === guarded);
    await until("the keeper", () => find() !== undefined);
    const { executionArn: arn, input } = find() as ExecutionDescription;
    return { arn, lease: (input as KeeperInput).lease };
  }

  /** Every keeper of an execution so far. */
  keepersOf(guarded: string): string[] {
    return this.#test.app
      .executions(keepers)
      .filter(({ input }) => (input as KeeperInput).guarded === guarded)
      .map(({ executionArn }) => executionArn);
  }

  /** What was started because an execution has ended. */
  endsOf(ended: string): ExecutionDescription[] {
    const all = this.#test.app.executions("Heartbeat/Ended/StateMachine");
    return all.filter(({ input }) => (input as EndedInput).detail.executionArn === ended);
  }

  /** Names of the states that an execution entered, in order. */
  states(arn: string): string[] {
    return this.#test.app.history(arn).entered.map(({ stateName }) => stateName);
  }

  /** Who holds the lock. */
  async holder(): Promise<string | undefined> {
    return (await this.#test.leases.inspect(transferKey))?.owner;
  }

  async #write(requests: WriteRequest[]): Promise<void> {
    const name = this.#test.app.tableName(table);
    for (let start = 0; start < requests.length; start += 25) {
      const RequestItems = { [name]: requests.slice(start, start + 25) };
      await this.#test.documents.send(new BatchWriteCommand({ RequestItems }));
    }
  }
}
