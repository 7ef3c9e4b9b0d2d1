import type { BatchStatementRequest } from "@aws-sdk/client-dynamodb";
import { attributeNames } from "../../base/schema.ts";
import type { Item, UpdateRequest } from "../../base/store.ts";
import { toAttributeValue } from "./attribute-values.ts";

/**
 * Writes a conditional update as a PartiQL statement, so that one BatchExecuteStatement can carry several.
 *
 * It supports updates that only SET plain values: both languages use the same words there, and differ only in the
 * spelling of names, values and commas.
 */
export function toStatement(tableName: string, request: UpdateRequest): BatchStatementRequest {
  const parameters: Item[string][] = [];
  const bind = (value: Item[string]): string => {
    parameters.push(value);
    return "?";
  };
  const spell = (expression: string): string =>
    expression.replaceAll(/[#:]\w+/g, (placeholder) => {
      if (placeholder.startsWith("#")) return `"${request.names[placeholder]}"`;
      return bind(request.values[placeholder] as Item[string]);
    });

  const assignments = spell(request.update).replaceAll(", ", " SET ");
  const { partitionKey, sortKey } = attributeNames;
  const key = `"${partitionKey}" = ${bind(request.key.pk)} AND "${sortKey}" = ${bind(request.key.sk)}`;
  const statement = `UPDATE "${tableName}" ${assignments} WHERE ${key} AND ${spell(request.condition)} RETURNING ALL NEW *`;
  return {
    Statement: statement,
    Parameters: parameters.map(toAttributeValue),
  };
}
