/** A handler that has no lock, and the same commands of the SDK in its bundle that the client sends. */
import {
  BatchExecuteStatementCommand,
  type BatchExecuteStatementCommandInput,
  DynamoDBClient,
  GetItemCommand,
  type GetItemCommandInput,
  ScanCommand,
  type ScanCommandInput,
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
  readonly scan?: ScanCommandInput;
  readonly update?: UpdateItemCommandInput;
}

export async function handler({ batch, get, scan, update }: Order): Promise<void> {
  if (batch) await dynamodb.send(new BatchExecuteStatementCommand(batch));
  if (get) await dynamodb.send(new GetItemCommand(get));
  if (scan) await dynamodb.send(new ScanCommand(scan));
  if (update) await dynamodb.send(new UpdateItemCommand(update));
}
