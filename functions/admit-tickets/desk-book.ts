import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { type DynamoDBDocumentClient, GetCommand, paginateQuery, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { type Desk, emptyDesk } from "./desk.ts";
import { deskKey, desksPartition, fenceAttribute } from "./schema.ts";

/** A desk as it was read. */
export interface DeskReading {
  readonly desk: Desk;
  /** Grows with every write; 0 for a desk that is not in the table yet. */
  readonly version: number;
}

/** The desks of all departments. */
export class DeskBook {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Names every department that has a desk. */
  async *departments(): AsyncGenerator<string, void, undefined> {
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :departments",
        ProjectionExpression: "sk",
        ExpressionAttributeValues: { ":departments": desksPartition },
      },
    );
    for await (const { Items = [] } of pages) yield* Items.map(({ sk }) => String(sk));
  }

  /** Reads a desk as it is now. */
  async read(department: string): Promise<DeskReading> {
    const { Item } = await this.#documents.send(
      new GetCommand({ TableName: this.#tableName, Key: deskKey(department), ConsistentRead: true }),
    );
    if (Item === undefined) return { desk: emptyDesk, version: 0 };
    const { serving, waiting, seen, version } = Item as Desk & { version: number };
    return { desk: { serving, waiting, seen }, version };
  }

  /**
   * Writes a desk that nobody has written since it was read.
   *
   * - `written`: it is.
   * - `changed`: a heartbeat came in between, or a later holder of the lease has written; nothing was changed.
   */
  async write(
    department: string,
    { desk, version }: DeskReading,
    lease: Lease,
  ): Promise<"written" | "changed"> {
    const fence = lease.fence({ attribute: fenceAttribute, format: "native" });
    const unread = version === 0 ? "attribute_not_exists(#version)" : "#version = :read";
    const serving =
      desk.serving === undefined ? { remove: " REMOVE #serving" } : { set: ", #serving = :serving" };
    try {
      await this.#documents.send(
        new UpdateCommand({
          TableName: this.#tableName,
          Key: deskKey(department),
          UpdateExpression:
            `${fence.UpdateExpression}, #waiting = :waiting, #seen = :seen, #version = :version` +
            (serving.set ?? serving.remove),
          ConditionExpression: `${fence.ConditionExpression} AND ${unread}`,
          ExpressionAttributeNames: {
            ...fence.ExpressionAttributeNames,
            "#serving": "serving",
            "#waiting": "waiting",
            "#seen": "seen",
            "#version": "version",
          },
          ExpressionAttributeValues: {
            ...fence.ExpressionAttributeValues,
            ":waiting": desk.waiting,
            ":seen": desk.seen,
            ":version": version + 1,
            ...(version === 0 ? {} : { ":read": version }),
            ...(desk.serving === undefined ? {} : { ":serving": desk.serving }),
          },
        }),
      );
      return "written";
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return "changed";
      throw error;
    }
  }

  /**
   * Notes that a ticket is alive: one write, without the lease. It raises the version, so that no change that was
   * decided before it can take the ticket off for its silence.
   *
   * Gives the desk; undefined when the ticket is neither in service nor waiting.
   */
  async heartbeat(department: string, ticket: string, now: number): Promise<Desk | undefined> {
    try {
      const { Attributes } = await this.#documents.send(
        new UpdateCommand({
          TableName: this.#tableName,
          Key: deskKey(department),
          UpdateExpression: "SET #seen.#ticket = :now ADD #version :one",
          ConditionExpression: "attribute_exists(#seen.#ticket)",
          ExpressionAttributeNames: { "#seen": "seen", "#ticket": ticket, "#version": "version" },
          ExpressionAttributeValues: { ":now": now, ":one": 1 },
          ReturnValues: "ALL_NEW",
        }),
      );
      return Attributes as Desk | undefined;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw error;
    }
  }
}
