/**
 * Update expressions: SET with `+`, `-` and if_not_exists, and REMOVE; anything else is an error. As in DynamoDB, every
 * right-hand side sees the item as it was before, and no attribute is changed twice.
 */
import type { Item } from "../../base/store.ts";
import {
  attributeIn,
  ExpressionError,
  type ExpressionReader,
  type ParsedExpression,
  remembering,
  type Scope,
} from "./expression-parser.ts";

type SetValue = string | number;
type SetOperand = (scope: Scope) => SetValue;

/** Parses an update, and returns the changed item. */
export const readUpdate: (text: string) => ParsedExpression<Item> = remembering((reader) => {
  const settings: { readonly name: string; readonly value: SetOperand }[] = [];
  const removals: string[] = [];
  while (!reader.isAtEnd) {
    const clause = reader.takeAny(["SET", "REMOVE"]);
    if (clause === undefined) throw reader.unexpected("SET or REMOVE");
    do {
      const name = readName(reader);
      if (clause === "REMOVE") {
        removals.push(name);
      } else {
        reader.expect("=");
        settings.push({ name, value: readSum(reader) });
      }
    } while (reader.take(","));
  }
  return (scope) => {
    const { item, names } = scope;
    const removed = removals.map((name) => names[name] as string);
    const changed = new Set(removed);
    const after: Record<string, SetValue> = {};
    // A copy without them: JavaScript engines make an object slow when it loses a property.
    for (const attribute in item) {
      if (!removed.includes(attribute)) after[attribute] = item[attribute] as SetValue;
    }
    for (const { name, value } of settings) {
      const attribute = names[name] as string;
      changed.add(attribute);
      after[attribute] = value(scope);
    }
    if (changed.size < removals.length + settings.length)
      throw new ExpressionError("two changes are about the same attribute");
    return after;
  };
});

function readName(reader: ExpressionReader): string {
  const name = reader.takeName();
  if (name === undefined) throw reader.unexpected("#name");
  return name;
}

function readSum(reader: ExpressionReader): SetOperand {
  const left = readValue(reader);
  const sign = reader.takeAny(["+", "-"]);
  if (sign === undefined) return left;
  const right = readValue(reader);
  return (scope) => {
    const [one, other] = [left(scope), right(scope)];
    if (typeof one !== "number" || typeof other !== "number")
      throw new ExpressionError(`${sign} takes numbers`);
    return sign === "+" ? one + other : one - other;
  };
}

function readValue(reader: ExpressionReader): SetOperand {
  if (reader.take("if_not_exists")) {
    reader.expect("(");
    const name = readName(reader);
    reader.expect(",");
    const otherwise = readValue(reader);
    reader.expect(")");
    return (scope) => attributeIn(scope, name) ?? otherwise(scope);
  }
  const name = reader.takeName();
  if (name !== undefined) {
    return (scope) => {
      const found = attributeIn(scope, name);
      if (found === undefined) throw new ExpressionError(`${scope.names[name]} is missing`);
      return found;
    };
  }
  const value = reader.takeValue();
  if (value === undefined) throw reader.unexpected("a value");
  return ({ values }) => values[value] as SetValue;
}
