// Writes to a table's settings, each a separate request; with --dry-run they are printed instead.

import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTimeToLiveCommand,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  type UpdateTableCommandInput,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { attributeNames } from "@leasehold/client/schema";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { type AskedTable, refusalIn } from "./asked-table.ts";

/** Prints a request instead of sending it. */
export type PrintRequest = (operation: string, request: object) => void;

/** Changes a table's settings. */
export class TableWrites {
  readonly #asked: AskedTable;
  readonly #print: PrintRequest | undefined;

  /** With `print` nothing is sent. */
  constructor(asked: AskedTable, print: PrintRequest | undefined) {
    this.#asked = asked;
    this.#print = print;
  }

  /** Creates the table. Rejects with a CommandError (78) if the name is taken. */
  async create(input: CreateTableCommandInput): Promise<void> {
    try {
      await this.#send("CreateTable", input, new CreateTableCommand(input));
    } catch (error) {
      const { name } = Object((error as Error).cause) as { readonly name?: unknown };
      if (name !== "ResourceInUseException") throw error;
      const where = this.#asked.region;
      throw new CommandError(
        `the table ${this.#asked.tableName} exists already (${where}): leasehold table check says whether it is a lease ` +
          "table, leasehold table set changes its settings",
        exitCodes.configuration,
        { cause: error },
      );
    }
  }

  async setPointInTimeRecovery(isOn: boolean): Promise<void> {
    const input = {
      TableName: this.#asked.tableName,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: isOn },
    };
    await this.#send("UpdateContinuousBackups", input, new UpdateContinuousBackupsCommand(input));
  }

  async update(change: Omit<UpdateTableCommandInput, "TableName">): Promise<void> {
    const input = { TableName: this.#asked.tableName, ...change };
    await this.#send("UpdateTable", input, new UpdateTableCommand(input));
  }

  async tag(
    tableArn: string,
    tags: readonly { readonly Key: string; readonly Value: string }[],
  ): Promise<void> {
    const input = { ResourceArn: tableArn, Tags: [...tags] };
    await this.#send("TagResource", input, new TagResourceCommand(input));
  }

  /**
   * Turns the time to live on; if it is on for another attribute, turns that off. Returns what was done, for people.
   * DynamoDB accepts one change an hour.
   */
  async setTimeToLive(): Promise<string> {
    const TableName = this.#asked.tableName;
    const { TimeToLiveDescription: current } = await this.#asked.ask((dynamodb, options) =>
      dynamodb.send(new DescribeTimeToLiveCommand({ TableName }), options),
    );
    const isOn = current?.TimeToLiveStatus?.startsWith("ENABL") ?? false;
    const { timeToLive } = attributeNames;
    if (isOn && current?.AttributeName === timeToLive) return `ttl is on already, on "${timeToLive}"`;
    const attribute = isOn ? (current?.AttributeName ?? "") : timeToLive;
    const input = { TableName, TimeToLiveSpecification: { AttributeName: attribute, Enabled: !isOn } };
    await this.#send("UpdateTimeToLive", input, new UpdateTimeToLiveCommand(input));
    return isOn
      ? `ttl is turned off for "${attribute}": say leasehold table set --ttl again in an hour`
      : `ttl is on, on "${timeToLive}"`;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the SDK's overloads take each command by its own type.
  async #send(operation: string, input: object, command: any): Promise<void> {
    if (this.#print !== undefined) {
      this.#print(operation, input);
      return;
    }
    try {
      await this.#asked.ask((dynamodb, options) => dynamodb.send(command, options));
    } catch (error) {
      if (refusalIn(error) !== "unsupported") throw error;
      const message = `the engine of the table ${this.#asked.tableName} does not know ${operation}: nothing is changed`;
      throw new CommandError(message, exitCodes.configuration, { cause: error });
    }
  }
}
