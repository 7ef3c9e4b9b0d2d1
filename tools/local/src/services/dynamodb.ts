// DynamoDB as a state machine calls it: any operation of the SDK, with the errors of Step Functions.

import * as sdk from "@aws-sdk/client-dynamodb";
import { IntegrationError } from "./errors.ts";
import { withIsoDates } from "./member-names.ts";
import type { Members } from "./operations.ts";

type AnyCommand = new (input: unknown) => Parameters<sdk.DynamoDBClient["send"]>[0];

const commands = sdk as unknown as Readonly<Record<string, AnyCommand | undefined>>;

/** Performs an operation of DynamoDB for a state machine; its members have the SDK's names already. */
export async function callDynamoDB(
  client: sdk.DynamoDBClient,
  action: string,
  request: Members,
  { signal, errorPrefix }: { readonly signal: AbortSignal; readonly errorPrefix: string },
): Promise<unknown> {
  const name = action.charAt(0).toUpperCase() + action.slice(1);
  const Command = Object.hasOwn(commands, `${name}Command`) ? commands[`${name}Command`] : undefined;
  if (Command === undefined) {
    throw new IntegrationError("Local.UnsupportedResource", `DynamoDB has no operation ${name}`);
  }
  const input =
    typeof request.TableName === "string" ? { ...request, TableName: tableName(request.TableName) } : request;
  try {
    const { $metadata: _, ...answer } = await client.send(new Command(input), { abortSignal: signal });
    return withIsoDates(answer);
  } catch (error) {
    if (signal.aborted) throw error;
    throw failure(error, errorPrefix);
  }
}

/** A local engine may know a table by its name only. */
function tableName(nameOrArn: string): string {
  return nameOrArn.replace(/^arn:.*:table\//, "");
}

function failure(error: unknown, prefix: string): IntegrationError {
  if (!(error instanceof sdk.DynamoDBServiceException)) {
    const text = error instanceof Error ? error.message : String(error);
    return new IntegrationError(`${prefix}.SdkClientException`, text);
  }
  const { httpStatusCode = 400, requestId = "unknown" } = error.$metadata;
  const details = `(Service: DynamoDb, Status Code: ${httpStatusCode}, Request ID: ${requestId})`;
  return new IntegrationError(`${prefix}.${error.name}`, `${error.message} ${details}`);
}
