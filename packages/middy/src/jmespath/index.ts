import { JMESPathError, JMESPathTypeError, search } from "@aws-lambda-powertools/jmespath";
import { PowertoolsFunctions } from "@aws-lambda-powertools/jmespath/functions";
import { check, InvalidOptionsError } from "@leasehold/client/internal";

/**
 * Returns a function that finds a key in an event, or a slot for `once`, by a JMESPath expression. Needs
 * `@aws-lambda-powertools/jmespath`, and knows the functions of Powertools, such as `powertools_json`.
 *
 * The expression has to find a non-empty string or a number in every event. An invocation whose event has none rejects
 * with InvalidOptionsError, before any request; `leasedBatch` reports that record as failed. Give a prefix by
 * `join('/', ['order', detail.orderId])`. Beware of `to_string`: of a missing value it makes the text `null`.
 *
 * Throws InvalidOptionsError if the expression has a mistake.
 *
 * ```ts
 * export const handler = leased({ tableName: "leases", key: jmespath("detail.orderId") }, async () => "done");
 * ```
 */
export function jmespath(expression: string): (event: unknown) => string {
  const customFunctions = new PowertoolsFunctions();
  const option = "expression";
  check(typeof expression === "string", option, expression, "a JMESPath expression");
  try {
    search(expression, {}, { customFunctions });
  } catch (error) {
    // An empty event lacks the values. What else fails is in the expression.
    const isMistake = error instanceof JMESPathError && !(error instanceof JMESPathTypeError);
    if (isMistake) throw expressionError(option, expression, "a valid JMESPath expression", error);
  }
  return (event) => {
    const name = `the result of jmespath(${JSON.stringify(expression)})`;
    const allowed = "a non-empty string or a number, in every event";
    let found: unknown;
    try {
      found = search(expression, event as object, { customFunctions });
    } catch (error) {
      throw expressionError(name, undefined, allowed, error);
    }
    if (typeof found === "number") return String(found);
    if (typeof found !== "string" || found === "") throw new InvalidOptionsError(name, found, allowed);
    return found;
  };
}

function expressionError(name: string, value: unknown, allowed: string, cause: unknown): InvalidOptionsError {
  // An error of another kind can show a part of the event.
  const why = cause instanceof JMESPathError ? cause.message : "it cannot read the event";
  return new InvalidOptionsError(name, value, allowed, { finding: `fails: ${why}`, cause });
}
