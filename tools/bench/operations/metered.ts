import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";

/** What a client has sent since it was last asked, and what DynamoDB bills for it. */
export interface Consumption {
  /** The names of the requests, in the order of their answers, including the SDK's own retries. */
  readonly sent: readonly string[];
  readonly writeUnits: number;
  readonly readUnits: number;
  /** How long each call took, its retries included, in milliseconds. */
  readonly tookMs: readonly number[];
}

/** Of a request that has taken effect. It is of a kind that the SDK does not repeat. */
export class LostReplyError extends Error {}

interface CapacityAnswer {
  readonly ConsumedCapacity?:
    | { readonly CapacityUnits?: number }
    | readonly { readonly CapacityUnits?: number }[];
}

const reads: ReadonlySet<string> = new Set(["GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"]);

interface WriteInput {
  readonly TransactItems?: readonly unknown[];
  readonly Statements?: readonly unknown[];
}

/**
 * Measures a client's requests by what the service itself says that they consumed.
 *
 * A refusal does not say so, and local engines say too little of transactions and batches. A write counts at least what
 * DynamoDB bills for items up to 1 KB: 1 unit for each item, refused or not, and 2 in a transaction.
 */
export class Meter {
  #sent: string[] = [];
  #tookMs: number[] = [];
  #writeUnits = 0;
  #readUnits = 0;

  constructor({ middlewareStack }: DynamoDBClient) {
    middlewareStack.add(
      (next, context) => async (args) => {
        const name = operationOf(context.commandName);
        const begun = performance.now();
        try {
          const input = { ...args.input, ReturnConsumedCapacity: "TOTAL" };
          const answer = await next({ ...args, input });
          const told = unitsOf(answer.output as CapacityAnswer);
          this.#add(name, reads.has(name) ? told : Math.max(told, leastUnits(args.input as WriteInput)));
          return answer;
        } catch (error) {
          const isPaid =
            error instanceof ConditionalCheckFailedException ||
            error instanceof TransactionCanceledException ||
            error instanceof LostReplyError;
          if (isPaid) this.#add(name, leastUnits(args.input as WriteInput));
          throw error;
        } finally {
          this.#tookMs.push(performance.now() - begun);
        }
      },
      { step: "initialize", name: "meter" },
    );
    middlewareStack.add(
      (next, context) => (args) => {
        this.#sent.push(operationOf(context.commandName));
        return next(args);
      },
      { step: "finalizeRequest", name: "meteredRequests" },
    );
  }

  /** Gives what came together, and begins again. */
  take(): Consumption {
    const taken = {
      sent: this.#sent,
      tookMs: this.#tookMs,
      writeUnits: this.#writeUnits,
      readUnits: this.#readUnits,
    };
    this.#sent = [];
    this.#tookMs = [];
    this.#writeUnits = 0;
    this.#readUnits = 0;
    return taken;
  }

  #add(name: string, units: number): void {
    if (reads.has(name)) this.#readUnits += units;
    else this.#writeUnits += units;
  }
}

/** Such as `2 GetItem, 1 UpdateItem`, by name: requests that go out together come in any order. */
export function listedRequests(sent: readonly string[]): string {
  if (sent.length === 0) return "none";
  const counts = new Map<string, number>();
  for (const name of [...sent].sort()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
}

function operationOf(commandName: unknown): string {
  return String(commandName).replace(/Command$/, "");
}

function unitsOf({ ConsumedCapacity = [] }: CapacityAnswer): number {
  return [ConsumedCapacity].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}

function leastUnits({ TransactItems, Statements }: WriteInput): number {
  return TransactItems === undefined ? (Statements?.length ?? 1) : 2 * TransactItems.length;
}
