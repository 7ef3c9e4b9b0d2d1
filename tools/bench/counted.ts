import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/** Counts what an SDK client sends, until it is told to stop. */
export interface RequestCounter {
  /** By the names of the operations. */
  readonly sent: ReadonlyMap<string, number>;
  readonly total: number;
  reset(): void;
  stop(): void;
}

/** Counts an SDK client's requests as they go out: behind the SDK's own retries, so that each of those counts too. */
export function countRequests({ middlewareStack }: DynamoDBClient): RequestCounter {
  const sent = new Map<string, number>();
  const name = "countRequests";
  middlewareStack.add(
    (next, context) => (args) => {
      const operation = String(context.commandName).replace("Command", "");
      sent.set(operation, (sent.get(operation) ?? 0) + 1);
      return next(args);
    },
    { step: "finalizeRequest", name },
  );
  return {
    sent,
    get total() {
      return [...sent.values()].reduce((sum, count) => sum + count, 0);
    },
    reset: () => sent.clear(),
    stop: () => void middlewareStack.remove(name),
  };
}

/** Such as `2 GetItem, 1 UpdateItem`. */
export function listed(sent: ReadonlyMap<string, number>): string {
  return [...sent].map(([operation, count]) => `${count} ${operation}`).join(", ");
}
