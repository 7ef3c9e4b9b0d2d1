import type { Item } from "../store.ts";
import type { ExpressionReader } from "./expression-parser.ts";

type Scalar = string | number | undefined;

const comparisons = ["<=", ">=", "<>", "=", "<", ">"] as const;

/**
 * Evaluates a condition or filter expression against an item.
 *
 * Knows AND, OR, NOT, parentheses, comparisons, BETWEEN, attribute_exists, attribute_not_exists and begins_with; anything else
 * is an error. Both sides of AND and OR are always read, for placeholders in either count as used.
 */
export function evaluateCondition(reader: ExpressionReader, item: Item): boolean {
  const result = readOr(reader, item);
  if (!reader.isAtEnd) throw reader.unexpected("the end");
  return result;
}

function readOr(reader: ExpressionReader, item: Item): boolean {
  let result = readAnd(reader, item);
  while (reader.take("OR")) result = readAnd(reader, item) || result;
  return result;
}

function readAnd(reader: ExpressionReader, item: Item): boolean {
  let result = readNot(reader, item);
  while (reader.take("AND")) result = readNot(reader, item) && result;
  return result;
}

function readNot(reader: ExpressionReader, item: Item): boolean {
  return reader.take("NOT") ? !readNot(reader, item) : readTerm(reader, item);
}

function readTerm(reader: ExpressionReader, item: Item): boolean {
  if (reader.take("(")) {
    const result = readOr(reader, item);
    reader.expect(")");
    return result;
  }
  const test = reader.takeAny(["attribute_not_exists", "attribute_exists", "begins_with"]);
  if (test === undefined) return readComparison(reader, item);
  reader.expect("(");
  const subject = readOperand(reader, item);
  let result = (subject !== undefined) === (test !== "attribute_not_exists");
  if (test === "begins_with") {
    reader.expect(",");
    const prefix = readOperand(reader, item);
    result = typeof subject === "string" && typeof prefix === "string" && subject.startsWith(prefix);
  }
  reader.expect(")");
  return result;
}

function readComparison(reader: ExpressionReader, item: Item): boolean {
  const left = readOperand(reader, item);
  if (reader.take("BETWEEN")) {
    const low = readOperand(reader, item);
    reader.expect("AND");
    const high = readOperand(reader, item);
    return isAtMost(low, left) && isAtMost(left, high);
  }
  const comparison = reader.takeAny(comparisons);
  if (comparison === undefined) throw reader.unexpected("a comparison");
  const right = readOperand(reader, item);
  if (comparison === "=") return left !== undefined && left === right;
  // An attribute that is not there differs from every value, and compares with none.
  if (comparison === "<>") return left !== right;
  if (left === undefined || right === undefined || typeof left !== typeof right) return false;
  if (comparison === "<") return left < right;
  if (comparison === "<=") return left <= right;
  return comparison === ">" ? left > right : left >= right;
}

function isAtMost(left: Scalar, right: Scalar): boolean {
  return left !== undefined && right !== undefined && typeof left === typeof right && left <= right;
}

function readOperand(reader: ExpressionReader, item: Item): Scalar {
  const path = reader.takePath();
  if (path !== undefined) return item[path];
  const value = reader.takeValue();
  if (value === undefined) throw reader.unexpected("#name or :value");
  return value;
}
