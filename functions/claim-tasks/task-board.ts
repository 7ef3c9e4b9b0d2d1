import { type DynamoDBDocumentClient, GetCommand, PutCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { transact } from "../support/transactions.ts";
import { type TaskState, taskKey, tasksPartition } from "./schema.ts";

/** A task of a set. */
export interface Task {
  readonly task: string;
  readonly state: TaskState;
  /** How often it was begun. */
  readonly attempts: number;
  /** What there is to do. */
  readonly input: unknown;
  /** Who began it last. */
  readonly worker?: string;
  /** What came of it, if it succeeded. */
  readonly result?: unknown;
  /** What was wrong with it, the last time that something was. */
  readonly remark?: string;
}

/** A change of a task's state. */
export interface Change {
  /** The state and the attempts that it is based on. */
  readonly from: Pick<Task, "state" | "attempts">;
  readonly to: Omit<Task, "task" | "input">;
}

/**
 * What became of a change.
 *
 * - `written`: it was made.
 * - `changedBefore`: the task is not as it was read; nothing was changed.
 * - `lost`: the lease does not hold the task any more; nothing was changed.
 */
export type ChangeResult = "written" | "changedBefore" | "lost";

/** The tasks of all sets. */
export class TaskBoard {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Puts a task up; false if the set has one of that name, which is left alone. */
  async put(set: string, task: string, input: unknown): Promise<boolean> {
    const Item = { ...taskKey(set, task), task, input, state: "waiting" satisfies TaskState, attempts: 0 };
    try {
      await this.#documents.send(
        new PutCommand({
          TableName: this.#tableName,
          Item,
          ConditionExpression: "attribute_not_exists(pk)",
        }),
      );
      return true;
    } catch (error) {
      if ((error as Error).name === "ConditionalCheckFailedException") return false;
      throw error;
    }
  }

  /** Goes through the tasks that are not finished, page by page. Reads the finished ones too, and pays for them. */
  async *unfinished(set: string): AsyncGenerator<Task, void, undefined> {
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :tasks",
        FilterExpression: "#state IN (:waiting, :running)",
        ExpressionAttributeNames: { "#state": "state" },
        ExpressionAttributeValues: {
          ":tasks": tasksPartition(set),
          ":waiting": "waiting" satisfies TaskState,
          ":running": "running" satisfies TaskState,
        },
      },
    );
    for await (const { Items = [] } of pages) yield* Items as Task[];
  }

  /** Reads a task as it is now. */
  async read(set: string, task: string): Promise<Task | undefined> {
    const { Item } = await this.#documents.send(
      new GetCommand({ TableName: this.#tableName, Key: taskKey(set, task), ConsistentRead: true }),
    );
    return Item as Task | undefined;
  }

  /** Changes a task's state while the lease holds it, in one transaction. */
  async change(set: string, task: string, { from, to }: Change, lease: Lease): Promise<ChangeResult> {
    const { state, attempts, worker, result, remark } = to;
    const extras = Object.entries({ worker, result, remark });
    const kept = extras.filter(([, value]) => value !== undefined);
    const dropped = extras.filter(([, value]) => value === undefined);
    const update =
      `SET #state = :state, #attempts = :attempts${kept.map(([name]) => `, #${name} = :${name}`).join("")}` +
      (dropped.length > 0 ? ` REMOVE ${dropped.map(([name]) => `#${name}`).join(", ")}` : "");
    const change = {
      TableName: this.#tableName,
      Key: taskKey(set, task),
      UpdateExpression: update,
      ConditionExpression: "#state = :fromState AND #attempts = :fromAttempts",
      ExpressionAttributeNames: Object.fromEntries(
        ["state", "attempts", "worker", "result", "remark"].map((name) => [`#${name}`, name]),
      ),
      ExpressionAttributeValues: {
        ":fromState": from.state,
        ":fromAttempts": from.attempts,
        ":state": state,
        ":attempts": attempts,
        ...Object.fromEntries(kept.map(([name, value]) => [`:${name}`, value])),
      },
    };
    const stillMine = lease.conditionCheck({ format: "native" });
    const refused = await transact(this.#documents, [stillMine, { Update: change }], 2);
    if (refused === undefined) return "written";
    return refused === 0 ? "lost" : "changedBefore";
  }
}
