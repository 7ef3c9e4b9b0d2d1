/** A handler that has no lock, and the same commands of the SDK in its bundle that the client sends. */
import {
  BatchExecuteStatementCommand,
  type BatchExecuteStatementCommandInput,
  DynamoDBClient,
  GetItemCommand,
  type GetItemCommandInput,
  QueryCommand,
  type QueryCommandInput,
  ScanCommand,
  type ScanCommandInput,
  TransactWriteItemsCommand,
  type TransactWriteItemsCommandInput,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";

const dynamodb = new DynamoDBClient({
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
});

/** What to send. */
export interface Order {
  readonly batch?: BatchExecuteStatementCommandInput;
  readonly get?: GetItemCommandInput;
  readonly query?: QueryCommandInput;
  readonly scan?: ScanCommandInput;
  readonly transaction?: TransactWriteItemsCommandInput;
  readonly update?: UpdateItemCommandInput;
}

export async function handler({ batch, get, query, scan, transaction, update }: Order): Promise<void> {
  if (batch) await dynamodb.send(new BatchExecuteStatementCommand(batch));
  if (get) await dynamodb.send(new GetItemCommand(get));
  if (query) await dynamodb.send(new QueryCommand(query));
  if (scan) await dynamodb.send(new ScanCommand(scan));
  if (transaction) await dynamodb.send(new TransactWriteItemsCommand(transaction));
  if (update) await dynamodb.send(new UpdateItemCommand(update));
}
