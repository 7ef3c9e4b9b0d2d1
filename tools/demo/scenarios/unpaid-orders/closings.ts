import type { GateRequest } from "../../gate.ts";

/** The closing of an order, as it is on its way to the table. */
export interface Closing {
  readonly orderId: string;
  readonly owner: string;
  readonly fencingToken: number;
  /** How many this run has sent before. */
  readonly before: number;
}

interface Transaction {
  readonly TransactItems: readonly {
    readonly Update?: {
      readonly ExpressionAttributeValues?: Record<
        string,
        { readonly S?: string; readonly N?: string } | undefined
      >;
    };
  }[];
}

/** Counts the closings of one run, and tells when the one comes at which something is to happen. */
export class ClosingWatch {
  readonly #at: number;
  /** The orders of each run; one that is sent again, after a conflict, counts once. */
  readonly #sent = new Map<string, Set<string>>();

  /** `at` counts a run's closings from 0. */
  constructor(at: number) {
    this.#at = at;
  }

  /** Gives the closing that a request asks for, if it is the one that is watched for. */
  sees({ operation, body }: GateRequest): Closing | undefined {
    if (operation !== "TransactWriteItems") return undefined;
    const { TransactItems } = body as Transaction;
    for (const { Update } of TransactItems) {
      const values = Update?.ExpressionAttributeValues;
      const [orderId, owner] = [values?.[":orderId"]?.S, values?.[":owner"]?.S];
      if (orderId === undefined || owner === undefined) continue;
      const orders = this.#sent.get(owner) ?? new Set();
      const before = orders.has(orderId) ? -1 : orders.size;
      this.#sent.set(owner, orders.add(orderId));
      const fencingToken = Number(values?.[":fencingToken"]?.N);
      return before === this.#at ? { orderId, owner, fencingToken, before } : undefined;
    }
    return undefined;
  }
}
