import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, type DynamoDBDocumentClient, PutCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { registerKey, registerPartition } from "./schema.ts";

/** A set with tasks. */
interface RegisteredSet {
  readonly set: string;
  /** When tasks were last added, in epoch milliseconds. */
  readonly addedAt: number;
}

/** The register of sets, for the schedule that starts workers. */
export class RegisteredSets {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Gives all of them. 1 request for about 1 MB. */
  async all(): Promise<RegisteredSet[]> {
    const sets: RegisteredSet[] = [];
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :sets",
        ExpressionAttributeValues: { ":sets": registerPartition },
      },
    );
    for await (const { Items = [] } of pages) {
      for (const { sk, addedAt } of Items as { sk: string; addedAt: number }[])
        sets.push({ set: sk, addedAt });
    }
    return sets;
  }

  /** Enters a set, or renews its time: workers are started for it until it is drained. */
  async add(set: string, addedAt: number): Promise<void> {
    const Item = { ...registerKey(set), addedAt };
    await this.#documents.send(new PutCommand({ TableName: this.#tableName, Item }));
  }

  /** Takes a set out, unless tasks were added since it was read. */
  async forget({ set, addedAt }: RegisteredSet): Promise<void> {
    try {
      await this.#documents.send(
        new DeleteCommand({
          TableName: this.#tableName,
          Key: registerKey(set),
          ConditionExpression: "addedAt = :addedAt",
          ExpressionAttributeValues: { ":addedAt": addedAt },
        }),
      );
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
    }
  }
}
