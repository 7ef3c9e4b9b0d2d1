import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
} from "@aws-sdk/client-dynamodb";
import { removeWaiter, type WaitsBy, waitersOf } from "@leasehold/client/internal";
import { attributeNames, type ItemKey, leaseItemKey } from "@leasehold/client/schema";
import type { Waiters } from "./waking.ts";

/** A waiter in the lease table. */
export type ParkedWaiter = WaitsBy & { readonly key: ItemKey };

/** The parked waiters of a lease table. */
export function parkedWaiters(dynamodb: DynamoDBClient, tableName: string): Waiters<ParkedWaiter> {
  return {
    async oldest(key, after) {
      const { keyCondition, names, values } = waitersOf(key);
      const { Items } = await dynamodb.send(
        new QueryCommand({
          TableName: tableName,
          KeyConditionExpression: keyCondition,
          ExpressionAttributeNames: { ...names },
          ExpressionAttributeValues: wire(values),
          ConsistentRead: true,
          Limit: 1,
          ...(after && { ExclusiveStartKey: wire(after.key) }),
        }),
      );
      const item = Items?.[0];
      if (item === undefined) return undefined;
      const { partitionKey, sortKey, taskToken, callbackId } = attributeNames;
      const at = { [partitionKey]: item[partitionKey]?.S, [sortKey]: item[sortKey]?.S };
      const place = { key: at as unknown as ItemKey };
      const callback = item[callbackId]?.S;
      return callback === undefined
        ? { ...place, taskToken: String(item[taskToken]?.S) }
        : { ...place, callbackId: callback };
    },

    async isHeld(key) {
      const { token } = attributeNames;
      const { Item } = await dynamodb.send(
        new GetItemCommand({
          TableName: tableName,
          Key: wire(leaseItemKey(key)),
          ConsistentRead: true,
          // Without the holder's payload, which may be large.
          ProjectionExpression: `#${token}`,
          ExpressionAttributeNames: { [`#${token}`]: token },
        }),
      );
      return Item?.[token] !== undefined;
    },

    async remove(waiter) {
      const { key: place, condition, names, values } = removeWaiter(waiter);
      try {
        await dynamodb.send(
          new DeleteItemCommand({
            TableName: tableName,
            Key: wire(place),
            ConditionExpression: condition,
            ExpressionAttributeNames: { ...names },
            ExpressionAttributeValues: wire(values),
          }),
        );
      } catch (error) {
        // The waiter is gone, or has parked again under another token.
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      }
    },
  };
}

/** Converts the attributes of waiters and their keys, which are all texts. */
function wire(values: object): Record<string, { S: string }> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { S: String(value) }]));
}
