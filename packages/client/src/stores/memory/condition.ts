/**
 * Condition, key condition and filter expressions: AND, OR, NOT, parentheses, comparisons, BETWEEN, attribute_exists,
 * attribute_not_exists and begins_with. Anything else is an error, whatever the item.
 */
import {
  attributeIn,
  type ExpressionReader,
  type ParsedExpression,
  remembering,
  type Scope,
} from "./expression-parser.ts";

type Predicate = ParsedExpression<boolean>["evaluate"];
type Scalar = string | number | undefined;
type Operand = (scope: Scope) => Scalar;

const comparisons = ["<=", ">=", "<>", "=", "<", ">"] as const;

/** Reads a condition, and returns whether an item meets it. */
export const readCondition: (text: string) => ParsedExpression<boolean> = remembering(readOr);

function readOr(reader: ExpressionReader): Predicate {
  let result = readAnd(reader);
  while (reader.take("OR")) {
    const [left, right] = [result, readAnd(reader)];
    result = (scope) => left(scope) || right(scope);
  }
  return result;
}

function readAnd(reader: ExpressionReader): Predicate {
  let result = readNot(reader);
  while (reader.take("AND")) {
    const [left, right] = [result, readNot(reader)];
    result = (scope) => left(scope) && right(scope);
  }
  return result;
}

function readNot(reader: ExpressionReader): Predicate {
  if (!reader.take("NOT")) return readTerm(reader);
  const denied = readNot(reader);
  return (scope) => !denied(scope);
}

function readTerm(reader: ExpressionReader): Predicate {
  if (reader.take("(")) {
    const result = readOr(reader);
    reader.expect(")");
    return result;
  }
  const test = reader.takeAny(["attribute_not_exists", "attribute_exists", "begins_with"]);
  if (test === undefined) return readComparison(reader);
  reader.expect("(");
  const subject = readOperand(reader);
  if (test !== "begins_with") {
    reader.expect(")");
    const exists = test === "attribute_exists";
    return (scope) => (subject(scope) !== undefined) === exists;
  }
  reader.expect(",");
  const prefix = readOperand(reader);
  reader.expect(")");
  return (scope) => {
    const [text, beginning] = [subject(scope), prefix(scope)];
    return typeof text === "string" && typeof beginning === "string" && text.startsWith(beginning);
  };
}

function readComparison(reader: ExpressionReader): Predicate {
  const left = readOperand(reader);
  if (reader.take("BETWEEN")) {
    const low = readOperand(reader);
    reader.expect("AND");
    const high = readOperand(reader);
    return (scope) => isAtMost(low(scope), left(scope)) && isAtMost(left(scope), high(scope));
  }
  const comparison = reader.takeAny(comparisons);
  if (comparison === undefined) throw reader.unexpected("a comparison");
  const right = readOperand(reader);
  const holds = comparers[comparison];
  return (scope) => holds(left(scope), right(scope));
}

/** A missing attribute differs from every value, and no comparison with it holds. */
const comparers: Readonly<Record<(typeof comparisons)[number], (left: Scalar, right: Scalar) => boolean>> = {
  "=": (left, right) => left !== undefined && left === right,
  "<>": (left, right) => left !== right,
  "<": (left, right) => isAtMost(left, right) && left !== right,
  "<=": isAtMost,
  ">": (left, right) => isAtMost(right, left) && left !== right,
  ">=": (left, right) => isAtMost(right, left),
};

function isAtMost(left: Scalar, right: Scalar): boolean {
  return left !== undefined && right !== undefined && typeof left === typeof right && left <= right;
}

function readOperand(reader: ExpressionReader): Operand {
  const name = reader.takeName();
  if (name !== undefined) return (scope) => attributeIn(scope, name);
  const value = reader.takeValue();
  if (value === undefined) throw reader.unexpected("#name or :value");
  return ({ values }) => values[value];
}
