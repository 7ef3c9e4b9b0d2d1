// JSONata with what Step Functions adds to it, on the injected clock.

import { createHash } from "node:crypto";
import type { Clock } from "@leasehold/client";
import jsonata from "jsonata";
import { expressionIn, statesLimits } from "./definition.ts";
import { StatesError } from "./errors.ts";

/** The reserved variable `$states`. `result` and `errorOutput` are there only where Step Functions has them. */
export interface StatesVariable {
  readonly input: unknown;
  readonly context: unknown;
  readonly result?: unknown;
  readonly errorOutput?: unknown;
}

/** What Assign has set so far, by name. */
export type Variables = Readonly<Record<string, unknown>>;

/** What the expressions of one state can read. */
interface Readable {
  readonly states: StatesVariable;
  readonly variables: Variables;
}

const formatTime = jsonata("$fromMillis($time, $picture, $zone)");

/** Evaluates the JSONata inside a definition, with the injected clock as its time. */
export class Evaluator {
  readonly #clock: Clock;
  readonly #uuid: () => string;
  readonly #random: () => number;
  readonly #compiled = new Map<string, jsonata.Expression>();

  constructor(clock: Clock, uuid: () => string, random: () => number) {
    this.#clock = clock;
    this.#uuid = uuid;
    this.#random = random;
  }

  /**
   * Evaluates every expression inside a value, and keeps the rest as it is.
   *
   * @param field where the value stands in its state, for the error's cause
   * @throws StatesError `States.QueryEvaluationError` when an expression fails, or gives nothing
   */
  async evaluate(template: unknown, field: string, readable: Readable): Promise<unknown> {
    const source = expressionIn(template);
    if (source !== undefined) return this.#run(source, field, readable);
    if (Array.isArray(template)) {
      const members: unknown[] = [];
      for (const [index, member] of template.entries()) {
        members.push(await this.evaluate(member, `${field}[${index}]`, readable));
      }
      return members;
    }
    if (typeof template !== "object" || template === null) return template;
    const evaluated: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(template)) {
      evaluated[key] = await this.evaluate(member, `${field}/${key}`, readable);
    }
    return evaluated;
  }

  async #run(source: string, field: string, { states, variables }: Readable): Promise<unknown> {
    const where = `The JSONata expression '${source}' specified for the field '${field}'`;
    const time = this.#clock.now();
    let value: unknown;
    try {
      value = await this.#compile(source).evaluate(undefined, {
        // jsonata's own versions read the machine's clock. Both stay fixed for one evaluation, as there.
        millis: () => time,
        now: (picture?: string, zone?: string) => formatTime.evaluate(undefined, { time, picture, zone }),
        ...variables,
        states,
      });
    } catch (error) {
      throw evaluationError(`${where} threw an error during evaluation. ${messageOf(error)}`);
    }
    if (value === undefined) throw evaluationError(`${where} returned nothing (undefined).`);
    // A round trip leaves behind the hidden flags of jsonata's sequences, and every reference to its inputs.
    const text = isFunction(value) ? undefined : JSON.stringify(value);
    if (text === undefined) throw evaluationError(`${where} returned a function.`);
    return JSON.parse(text);
  }

  #compile(source: string): jsonata.Expression {
    const known = this.#compiled.get(source);
    if (known !== undefined) return known;
    const expression = jsonata(source);
    expression.registerFunction("hash", hash, "<ss:s>");
    expression.registerFunction("parse", parse, "<s:x>");
    expression.registerFunction("uuid", this.#uuid, "<:s>");
    expression.registerFunction("random", this.#random, "<:n>");
    this.#compiled.set(source, expression);
    return expression;
  }
}

// The functions that Step Functions adds to JSONata, as far as the project's machines use them.

function hash(data: string | undefined, algorithm: string): string | undefined {
  if (data === undefined) return undefined;
  // "SHA-256" there is "sha256" here.
  return createHash(algorithm.replace("-", "")).update(data).digest("hex");
}

function parse(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

/** The error of an expression that failed, or whose value is not what its field takes. */
export function evaluationError(cause: string): StatesError {
  return new StatesError("States.QueryEvaluationError", cause);
}

function isFunction(value: unknown): boolean {
  if (typeof value === "function") return true;
  return (
    typeof value === "object" &&
    value !== null &&
    ("_jsonata_lambda" in value || "_jsonata_function" in value)
  );
}

/** jsonata throws plain objects with a code and a message. */
function messageOf(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  const { code, message } = thrown as { code?: string; message?: string };
  return [code, message].filter((part) => part !== undefined).join(": ");
}

/**
 * A copy as JSON carries it: no undefined, no dates, no references to the original. Nothing at all becomes null.
 *
 * @throws StatesError `States.Runtime` when JSON cannot carry the value, `States.DataLimitExceeded` beyond 256 KiB
 */
export function asPayload(value: unknown, what: string): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new StatesError("States.Runtime", `${what} is not JSON: ${String(error)}`);
  }
  if (text === undefined) return null;
  const bytes = Buffer.byteLength(text);
  if (bytes > statesLimits.payloadBytes) {
    throw new StatesError(
      "States.DataLimitExceeded",
      `${what} has ${bytes} bytes, more than the maximum of ${statesLimits.payloadBytes} bytes.`,
    );
  }
  return JSON.parse(text);
}
