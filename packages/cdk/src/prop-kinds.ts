/**
 * The kind of value of each prop, for callers without a type checker. The construct refuses a prop of another kind by
 * its name. Otherwise its first use would throw a TypeError.
 */
import { Token } from "aws-cdk-lib";

/** One kind of value. */
export interface Kind {
  /** The kind's name in an error message. */
  readonly name: string;
  readonly accepts: (value: unknown) => boolean;
}

/** The kind of each prop. */
export type Kinds<Props> = { readonly [Name in keyof Required<Props>]: Kind };

export const aText: Kind = { name: "a text", accepts: (value) => typeof value === "string" };
export const aFlag: Kind = { name: "true or false", accepts: (value) => typeof value === "boolean" };
export const aNumber: Kind = { name: "a number", accepts: (value) => typeof value === "number" };
export const aPositiveNumber: Kind = {
  name: "a number above 0",
  accepts: (value) => typeof value === "number" && value > 0,
};
export const aDate: Kind = {
  name: "a valid Date",
  accepts: (value) => !Number.isNaN((value as Partial<Date> | null)?.getTime?.() ?? Number.NaN),
};
export const anything: Kind = { name: "any value", accepts: () => true };

/** A kind of value by its members, because the value may come from another copy of the library. */
export function having(name: string, ...members: readonly string[]): Kind {
  return {
    name,
    accepts: (value) =>
      (typeof value === "object" || typeof value === "function") &&
      value !== null &&
      members.every((member) => (value as Record<string, unknown>)[member] !== undefined),
  };
}

export function aListOf(kind: Kind): Kind {
  return {
    name: `a list, and for each entry ${kind.name}`,
    accepts: (value) => Array.isArray(value) && Array.from(value).every((entry) => kind.accepts(entry)),
  };
}

export function oneOf(...values: readonly unknown[]): Kind {
  const name = `one of ${values.map((value) => shown(value)).join(", ")}`;
  return { name, accepts: (value) => values.includes(value) };
}

export const aDuration: Kind = having(
  "a Duration, such as Duration.minutes(3)",
  "toMilliseconds",
  "isUnresolved",
);
export const aTable: Kind = having("a LeaseTable", "table", "grants", "nameFor", "node");
export const aWakeup: Kind = having("a LeaseWakeup", "serve", "table");
export const aHeartbeat: Kind = having("a LeaseHeartbeat", "guard", "grantStart", "table");
export const aRedriveGuard: Kind = having("the redriveGuard of a LeasedWorkflow", "stateMachine", "node");
export const aGrantee: Kind = having("a role, a function or another grantee", "grantPrincipal");
export const aFunction: Kind = having("a function of aws-lambda", "functionArn", "node");
export const aStateMachine: Kind = having("a state machine", "stateMachineArn", "node");
export const aQueue: Kind = having("a queue", "queueArn", "node");
export const aMetric: Kind = having("a metric", "toMetricConfig");
export const alarmActions: Kind = aListOf(having("an alarm action", "bind"));

/** Returns the value, or refuses it by name. */
export function checkKind<Value>(name: string, value: Value, kind: Kind): Value {
  const refusal = (options?: ErrorOptions): Error =>
    new Error(`${name} is ${shown(value)}: give ${kind.name}`, options);
  try {
    if (kind.accepts(value)) return value;
  } catch (cause) {
    // A member of the value has thrown it.
    throw refusal({ cause });
  }
  throw refusal();
}

/**
 * Returns the known props that have a value, each read once.
 *
 * Throws an Error that names the first prop of a wrong kind, or a required one that is missing.
 */
export function checkProps<Props extends object>(
  props: Props,
  kinds: Kinds<Props>,
  ...required: readonly (keyof Props & string)[]
): Props {
  checkKind("props", props, having("an object"));
  const given: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries<Kind>(kinds)) {
    const value = memberOf(props, name);
    if (value === undefined && !required.includes(name as keyof Props & string)) continue;
    given[name] = checkKind(name, value, kind);
  }
  return given as Props;
}

/** The props of these names that have a value: an absent prop must stay absent. */
export function picked<Props extends object, Name extends keyof Props>(
  props: Props,
  ...names: readonly Name[]
): { [Key in Name]?: Exclude<Props[Key], undefined> } {
  const entries = names.map((name) => [name, props[name]]).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries);
}

/** A number in the text of an error. */
function numberText(number: number): string {
  return Token.isUnresolved(number) ? "known at deployment only" : String(number);
}

/** Refuses a number that is no whole number of a range; undefined passes. */
export function checkWholeNumber(
  name: string,
  number: number | undefined,
  least: number,
  most: number = Infinity,
): void {
  if (number === undefined || (Number.isSafeInteger(number) && number >= least && number <= most)) return;
  const range = most === Infinity ? `above ${least - 1}` : `from ${least} to ${most}`;
  throw new Error(`${name} is ${numberText(number)}: set a whole number ${range}`);
}

function memberOf(props: object, name: string): unknown {
  try {
    return (props as Record<string, unknown>)[name];
  } catch (cause) {
    throw new Error(`${name} does not let itself be read: give a plain object of props`, { cause });
  }
}

function shown(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  return typeof value === "object" && value !== null ? "an object of another kind" : String(value);
}
