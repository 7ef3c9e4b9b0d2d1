import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { DynamoDBSender } from "../../base/options.ts";

/**
 * Describes the region and the endpoint of a client, for the end of a message's subject. Call it only after an answer:
 * then the client has looked up both.
 */
export async function locationOf(dynamodb: DynamoDBSender): Promise<string> {
  try {
    const { region, endpoint } = (dynamodb as DynamoDBClient).config;
    const { protocol, hostname, port } = (await endpoint?.()) ?? {};
    const address = protocol ? ` at ${protocol}//${hostname}${port ? `:${port}` : ""}` : "";
    return ` in the region ${await region()}${address}`;
  } catch {
    // Ignored: the message has its reason already, and a test double may have no settings.
    return "";
  }
}
