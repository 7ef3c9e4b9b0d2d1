import { GetItemCommand, TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { Lease } from "@leasehold/client";
import type { Details } from "../history.ts";
import type { WorkContext } from "./context.ts";

/** How a register keeps stale holders out. */
const defences = ["fence", "check"] as const;
type Defence = (typeof defences)[number];

/** A value with its answer; none where the operation was refused or nobody knows. */
interface Known {
  readonly value: string;
}

/**
 * What a holder does with the lock's registers: it reads them; the function that it gives writes, in place of what was read.
 * That may be long after, when the lease is over: a holder that ignores its loss is what a fence is for.
 *
 * By `fence` the reading is a fenced write of its own, so that the item knows of this holder from then on. By `check` the
 * write is a transaction with the lease's condition check. One write for each lease, and none is repeated.
 */
export async function readToWrite(context: WorkContext, lease: Lease): Promise<() => Promise<void>> {
  const known = await Promise.all(
    defences.map(async (defence) => {
      const register = new Register(context, lease.key, defence);
      const read = await (defence === "fence" ? register.stamp(lease) : register.read());
      return { register, read };
    }),
  );
  return async () => {
    await Promise.all(
      known.map(async ({ register, read }) => read && (await register.write(lease, read.value))),
    );
  };
}

/** A read by a process that holds nothing. */
export async function readRegister(context: WorkContext, lockKey: string): Promise<void> {
  await new Register(context, lockKey, context.random.pick(defences)).read();
}

let values = 0;

class Register {
  readonly #context: WorkContext;
  readonly #name: string;
  readonly #item: {
    readonly TableName: string;
    readonly Key: { readonly pk: { S: string }; readonly sk: { S: string } };
  };
  readonly #defence: Defence;

  constructor(context: WorkContext, lockKey: string, defence: Defence) {
    this.#context = context;
    this.#name = `register/${lockKey}/${defence}`;
    this.#item = { TableName: context.config.itemsTable, Key: { pk: { S: lockKey }, sk: { S: defence } } };
    this.#defence = defence;
  }

  /** Reads, and makes the item refuse all earlier holders from then on. */
  async stamp(lease: Lease): Promise<Known | undefined> {
    const { attributes: _, ...fence } = lease.fence();
    const { fencingToken } = lease;
    return await this.#read({ fencingToken }, async () => {
      const command = new UpdateItemCommand({ ...this.#item, ...fence, ReturnValues: "ALL_NEW" });
      return (await this.#context.items.send(command)).Attributes?.value?.S;
    });
  }

  async read(): Promise<Known | undefined> {
    return await this.#read({}, async () => {
      const command = new GetItemCommand({ ...this.#item, ConsistentRead: true });
      return (await this.#context.items.send(command)).Item?.value?.S;
    });
  }

  async #read(details: Details, request: () => Promise<string | undefined>): Promise<Known | undefined> {
    const answer = this.#context.journal.call("register", "read", this.#name, details);
    try {
      const value = (await request()) ?? "";
      answer("ok", { value });
      return { value };
    } catch (error) {
      answer(outcomeOfItem(error), { error: (error as Error).name });
      return undefined;
    }
  }

  async write(lease: Lease, previous: string): Promise<void> {
    const { journal, items, config } = this.#context;
    values += 1;
    const value = `${config.name}:${values}`;
    const { fencingToken } = lease;
    const answer = journal.call("register", "write", this.#name, { previous, value, fencingToken });
    try {
      if (this.#defence === "fence") await items.send(this.#fencedWrite(lease, value));
      else await items.send(this.#checkedWrite(lease, value));
      answer("ok");
    } catch (error) {
      answer(outcomeOfItem(error), { error: (error as Error).name });
    }
  }

  #fencedWrite(lease: Lease, value: string): UpdateItemCommand {
    const { attributes: _, ...fence } = lease.fence();
    return new UpdateItemCommand({
      ...this.#item,
      ...fence,
      UpdateExpression: `${fence.UpdateExpression}, #value = :value`,
      ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#value": "value" },
      ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":value": { S: value } },
    });
  }

  #checkedWrite(lease: Lease, value: string): TransactWriteItemsCommand {
    const update = {
      ...this.#item,
      UpdateExpression: "SET #value = :value",
      ExpressionAttributeNames: { "#value": "value" },
      ExpressionAttributeValues: { ":value": { S: value } },
    };
    return new TransactWriteItemsCommand({ TransactItems: [lease.conditionCheck(), { Update: update }] });
  }
}

/** A condition of fence or check that has failed once fails for ever. After any other error the outcome is unknown. */
function outcomeOfItem(error: unknown): "refused" | "unknown" {
  const { name, CancellationReasons: reasons = [] } = error as Error & {
    readonly CancellationReasons?: readonly { readonly Code?: string }[];
  };
  const isRefused =
    name === "ConditionalCheckFailedException" ||
    reasons.some(({ Code }) => Code === "ConditionalCheckFailed");
  return isRefused ? "refused" : "unknown";
}
