import type { Item } from "../store.ts";
import { ExpressionError, type ExpressionReader } from "./expression-parser.ts";

/**
 * Gives the item that an update expression makes of an item.
 *
 * Knows SET with `+`, `-` and if_not_exists, and REMOVE; anything else is an error. As in DynamoDB, every right-hand
 * side sees the item as it was before. An update that is not to be applied is read all the same, for its placeholders;
 * then an attribute that it wants may be missing.
 */
export function applyUpdate(reader: ExpressionReader, before: Item, isApplied = true): Item {
  const after: Record<string, string | number> = { ...before };
  while (!reader.isAtEnd) {
    const clause = reader.takeAny(["SET", "REMOVE"]);
    if (clause === undefined) throw reader.unexpected("SET or REMOVE");
    do {
      const path = readPath(reader);
      if (clause === "REMOVE") {
        delete after[path];
      } else {
        reader.expect("=");
        after[path] = readSum(reader, before, isApplied);
      }
    } while (reader.take(","));
  }
  return after;
}

function readPath(reader: ExpressionReader): string {
  const path = reader.takePath();
  if (path === undefined) throw reader.unexpected("#name");
  return path;
}

function readSum(reader: ExpressionReader, item: Item, isApplied: boolean): string | number {
  const left = readValue(reader, item, isApplied);
  const sign = reader.takeAny(["+", "-"]);
  if (sign === undefined) return left;
  const right = readValue(reader, item, isApplied);
  if (typeof left !== "number" || typeof right !== "number")
    throw new ExpressionError(`${sign} takes numbers`);
  return sign === "+" ? left + right : left - right;
}

function readValue(reader: ExpressionReader, item: Item, isApplied: boolean): string | number {
  if (reader.take("if_not_exists")) {
    reader.expect("(");
    const path = readPath(reader);
    reader.expect(",");
    const otherwise = readValue(reader, item, isApplied);
    reader.expect(")");
    return item[path] ?? otherwise;
  }
  const path = reader.takePath();
  const value = path === undefined ? reader.takeValue() : item[path];
  if (value !== undefined) return value;
  if (path === undefined) throw reader.unexpected("a value");
  if (isApplied) throw new ExpressionError(`${path} is missing`);
  return 0;
}
