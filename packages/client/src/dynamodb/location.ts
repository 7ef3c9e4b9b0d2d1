import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { DynamoDBSender } from "../options/options.ts";

/** The settings that determine where a client sends its requests; a test double may have none of them. */
type Settings = Partial<Pick<DynamoDBClient["config"], "region" | "endpoint">>;

/**
 * Describes the region and the endpoint of a client, for a message. Call it only after an answer: then the client has
 * looked up both.
 */
export async function locationOf(dynamodb: DynamoDBSender): Promise<string> {
  const { region, endpoint }: Settings = (dynamodb as Partial<DynamoDBClient>).config ?? {};
  // Ignored: the surrounding message already has the reason.
  const name = typeof region === "function" ? await region().catch(() => undefined) : undefined;
  const parts = typeof endpoint === "function" ? await endpoint().catch(() => undefined) : undefined;
  const port = parts?.port === undefined ? "" : `:${parts.port}`;
  const address = parts === undefined ? "AWS's own endpoint" : `${parts.protocol}//${parts.hostname}${port}`;
  return name === undefined ? `at ${address}` : `in the region ${name} at ${address}`;
}
