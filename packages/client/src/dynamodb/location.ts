import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { DynamoDBSender } from "../options/options.ts";

/** The parts of a client's settings that say where it sends its requests; a test double may have none of them. */
type Settings = Partial<Pick<DynamoDBClient["config"], "region" | "endpoint">>;

/**
 * Says which region and endpoint a client asks, for a message. Ask only after an answer has come: then the client has
 * looked both up already.
 */
export async function locationOf(dynamodb: DynamoDBSender): Promise<string> {
  const { region, endpoint }: Settings = (dynamodb as Partial<DynamoDBClient>).config ?? {};
  // Ignored: what keeps them from being told is in the message that this one is a part of.
  const name = typeof region === "function" ? await region().catch(() => undefined) : undefined;
  const parts = typeof endpoint === "function" ? await endpoint().catch(() => undefined) : undefined;
  const port = parts?.port === undefined ? "" : `:${parts.port}`;
  const address = parts === undefined ? "AWS's own endpoint" : `${parts.protocol}//${parts.hostname}${port}`;
  return name === undefined ? `at ${address}` : `in the region ${name} at ${address}`;
}
