/**
 * Evaluates the JSONata of a deployed state machine by the jsonata package itself, state by state and without running
 * it: with what a service would answer, and with what other states would have assigned.
 */
import { createHash, randomUUID } from "node:crypto";
import jsonata from "jsonata";

type Json = unknown;
type Fields = Readonly<Record<string, Json>>;

/** What a state's expressions may see. */
export interface Bindings {
  readonly input: Json;
  readonly context: Json;
  /** The answer of a Task or of a Parallel; bound only where Step Functions binds it. */
  readonly result: Json;
  readonly errorOutput: Json;
  /** Every variable that some state assigns, by name. */
  readonly variables: Fields;
}

/** What came of all the evaluations. */
export interface Evaluations {
  /** What is wrong, once each. */
  readonly problems: ReadonlySet<string>;
  /** Expressions that no bindings led to: they were not tested. */
  readonly untouched: readonly string[];
}

/** Evaluates every state of a definition, with each of the bindings that `bindingsOf` gives for it. */
export async function evaluateDefinition(
  definition: Json,
  bindingsOf: (state: Fields, name: string) => readonly Bindings[],
): Promise<Evaluations> {
  const evaluation = new Evaluation();
  for (const [name, state] of statesIn(definition)) {
    for (const bindings of bindingsOf(state, name)) await evaluation.visit(name, state, bindings);
  }
  const all = expressionsIn(definition);
  return { problems: evaluation.problems, untouched: [...all].filter((it) => !evaluation.seen.has(it)) };
}

/** Every state, with those inside of Parallel and Map states. */
function statesIn(definition: Json): [string, Fields][] {
  const { States = {} } = definition as { States?: Record<string, Fields> };
  return Object.entries(States).flatMap(([name, state]): [string, Fields][] => [
    [name, state],
    ...((state.Branches ?? []) as Json[]).flatMap(statesIn),
    ...(state.ItemProcessor === undefined ? [] : statesIn(state.ItemProcessor)),
  ]);
}

function expressionsIn(value: Json): Set<string> {
  if (typeof value === "string") return new Set(sourceOf(value) === undefined ? [] : [value]);
  if (typeof value !== "object" || value === null) return new Set();
  return new Set(Object.values(value).flatMap((member) => [...expressionsIn(member)]));
}

function sourceOf(text: string): string | undefined {
  return /^\{%(.*)%\}$/s.exec(text)?.[1];
}

class Evaluation {
  readonly problems = new Set<string>();
  readonly seen = new Set<string>();
  readonly #compiled = new Map<string, jsonata.Expression>();

  /** A Choice looks at its rules in order, and at none behind the first that holds. */
  async visit(name: string, state: Fields, { input, context, result, errorOutput, variables }: Bindings) {
    const before = { input, context };
    const after = { ...before, result };
    const rules = (state.Choices ?? []) as Fields[];
    for (const [index, rule] of rules.entries()) {
      const at = `${name}/Choices[${index}]`;
      const holds = await this.#evaluate(rule.Condition, `${at}/Condition`, before, variables);
      if (typeof holds !== "boolean") this.problems.add(`${at}/Condition gives no boolean: ${holds}`);
      if (holds !== true) continue;
      await this.#assign(rule.Assign, at, before, variables);
      return;
    }
    for (const field of ["Arguments", "Items", "Error", "Cause"]) {
      const value = await this.#evaluate(state[field], `${name}/${field}`, before, variables);
      for (const problem of attributeProblems(value)) this.problems.add(`${name}/${field}: ${problem}`);
    }
    for (const field of ["Seconds", "TimeoutSeconds", "HeartbeatSeconds"]) {
      const value = await this.#evaluate(state[field], `${name}/${field}`, before, variables);
      const isGood = value === undefined || (Number.isInteger(value) && Number(value) >= 0);
      if (!isGood) this.problems.add(`${name}/${field} is no whole number: ${value}`);
    }
    const answered = state.Type === "Task" || state.Type === "Parallel" || state.Type === "Map";
    await this.#assign(state.Assign, name, answered ? after : before, variables);
    await this.#evaluate(state.Output, `${name}/Output`, answered ? after : before, variables);
    for (const [index, catcher] of ((state.Catch ?? []) as Fields[]).entries()) {
      const at = `${name}/Catch[${index}]`;
      await this.#assign(catcher.Assign, at, { ...before, errorOutput }, variables);
      await this.#evaluate(catcher.Output, `${at}/Output`, { ...before, errorOutput }, variables);
    }
  }

  /** What is assigned has to be of the kind that other states are given for it, or those are tested with fiction. */
  async #assign(assign: Json, at: string, states: Fields, variables: Fields): Promise<void> {
    for (const [variable, value] of Object.entries((assign ?? {}) as Fields)) {
      const given = await this.#evaluate(value, `${at}/Assign/${variable}`, states, variables);
      const [wanted, found] = [kindOf(variables[variable]), kindOf(given)];
      if (wanted !== found) this.problems.add(`${at}/Assign/${variable} is ${found}, and not ${wanted}`);
    }
  }

  async #evaluate(value: Json, at: string, states: Fields, variables: Fields): Promise<Json> {
    if (typeof value === "string") {
      const source = sourceOf(value);
      return source === undefined ? value : await this.#run(value, source, at, states, variables);
    }
    if (typeof value !== "object" || value === null) return value;
    const members: [string, Json][] = [];
    for (const [name, member] of Object.entries(value)) {
      members.push([name, await this.#evaluate(member, `${at}/${name}`, states, variables)]);
    }
    return Array.isArray(value) ? members.map(([, member]) => member) : Object.fromEntries(members);
  }

  async #run(text: string, source: string, at: string, states: Fields, variables: Fields): Promise<Json> {
    this.seen.add(text);
    try {
      const given: Json = await this.#compile(source).evaluate(undefined, { ...variables, states });
      if (given === undefined) this.problems.add(`${at} gives nothing`);
      return given;
    } catch (error) {
      this.problems.add(`${at}: ${(error as Error).message}`);
      return undefined;
    }
  }

  #compile(source: string): jsonata.Expression {
    const known = this.#compiled.get(source);
    if (known !== undefined) return known;
    const expression = jsonata(source);
    // Step Functions' own additions, as far as they are in use; any other is an error.
    expression.registerFunction("uuid", () => randomUUID(), "<:s>");
    const hash = (text: string, algorithm: string): string =>
      createHash(algorithm.replace("-", "")).update(text).digest("hex");
    expression.registerFunction("hash", hash, "<ss:s>");
    expression.registerFunction("parse", (text: string): Json => JSON.parse(text), "<s:x>");
    this.#compiled.set(source, expression);
    return expression;
  }
}

/** DynamoDB takes texts only, also for numbers. */
function attributeProblems(value: Json): string[] {
  if (typeof value !== "object" || value === null) return [];
  const [[type, content] = [], ...more] = Object.entries(value);
  if (more.length === 0 && (type === "S" || type === "N")) {
    const isGood = typeof content === "string" && (type === "S" || /^-?\d+$/.test(content));
    return isGood ? [] : [`no attribute value: ${JSON.stringify(value)}`];
  }
  return Object.values(value).flatMap(attributeProblems);
}

function kindOf(value: Json): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
