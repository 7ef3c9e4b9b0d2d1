import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  QueryCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { removeWaiter, type WaitsBy, waitersOf } from "@leasehold/client/expressions";
import { attributeNames, type ItemKey } from "@leasehold/client/schema";
import type { Waiters } from "./waking.ts";

/** A waiter as the lease table has it. */
export type ParkedWaiter = WaitsBy & { readonly key: ItemKey };

/** The waiters that are parked in a lease table. */
export function parkedWaiters(dynamodb: DynamoDBClient, tableName: string): Waiters<ParkedWaiter> {
  return {
    async oldest(key) {
      const { keyCondition, names, values } = waitersOf(key);
      const { Items } = await dynamodb.send(
        new QueryCommand({
          TableName: tableName,
          KeyConditionExpression: keyCondition,
          ExpressionAttributeNames: { ...names },
          ExpressionAttributeValues: marshall(values),
          ConsistentRead: true,
          Limit: 1,
        }),
      );
      const item = Items?.[0];
      if (item === undefined) return undefined;
      const { partitionKey, sortKey, taskToken, callbackId } = attributeNames;
      const plain = unmarshall(item);
      const at = { [partitionKey]: plain[partitionKey], [sortKey]: plain[sortKey] };
      const place = { key: at as unknown as ItemKey };
      return plain[callbackId] === undefined
        ? { ...place, taskToken: String(plain[taskToken]) }
        : { ...place, callbackId: String(plain[callbackId]) };
    },

    async remove(waiter) {
      const { key: place, condition, names, values } = removeWaiter(waiter);
      try {
        await dynamodb.send(
          new DeleteItemCommand({
            TableName: tableName,
            Key: marshall(place),
            ConditionExpression: condition,
            ExpressionAttributeNames: { ...names },
            ExpressionAttributeValues: marshall(values),
          }),
        );
      } catch (error) {
        // It is gone, or it has parked again under another token.
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      }
    },
  };
}
