import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { dynamodb } from "./dynamodb.ts";
import { once } from "./environment.ts";

/** The same connection for plain JavaScript values. A file of its own, for it adds 13 KB to a bundle. */
export const documents: () => DynamoDBDocumentClient = once(() => DynamoDBDocumentClient.from(dynamodb()));
