import { expressionIn } from "./definition.ts";
import type { ExpressionPlace } from "./expression-check.ts";

/** Says what is wrong with an expression before it runs. */
export type ExpressionCheck = (source: string, place: ExpressionPlace) => readonly string[];

/** A place in a definition, where problems are noted with their path. */
export class Place {
  readonly path: string;
  /** The problems of the whole definition. */
  readonly problems: string[];
  readonly #checkExpression: ExpressionCheck;

  constructor(path: string, problems: string[], checkExpression: ExpressionCheck) {
    this.path = path;
    this.problems = problems;
    this.#checkExpression = checkExpression;
  }

  at(key: string | number): Place {
    return new Place(`${this.path}/${key}`, this.problems, this.#checkExpression);
  }

  problem(message: string): void {
    this.problems.push(`${this.path || "/"}: ${message}`);
  }

  object(value: unknown): Record<string, unknown> | undefined {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
    this.problem("must be an object");
    return undefined;
  }

  /** A list with at least one member. */
  list(value: unknown): readonly unknown[] {
    if (Array.isArray(value) && value.length > 0) return value;
    this.problem("must be a list with at least one member");
    return [];
  }

  known(value: Record<string, unknown>, fields: readonly string[]): void {
    for (const field of Object.keys(value)) {
      if (!fields.includes(field)) {
        this.at(field).problem(`is not supported here; supported are ${fields.join(", ")}`);
      }
    }
  }

  /** A whole number; absent is fine. */
  whole(value: unknown, min: number, max: number): void {
    if (value === undefined) return;
    if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
      this.problem(`must be a whole number from ${min} to ${max}`);
    }
  }

  /** A whole number or an expression; absent is fine. */
  wholeOrExpression(value: unknown, min: number, max: number): void {
    if (expressionIn(value) === undefined) this.whole(value, min, max);
    else this.template(value);
  }

  text(value: unknown): value is string {
    if (typeof value === "string" && value !== "") return true;
    this.problem("must be a non-empty text");
    return false;
  }

  /** Any value, with expressions anywhere inside. */
  template(value: unknown, place: ExpressionPlace = { inCatcher: false }): void {
    const source = expressionIn(value);
    if (source !== undefined) {
      for (const message of this.#checkExpression(source, place)) this.problem(message);
    } else if (typeof value === "string") {
      if (value.startsWith("{%") || value.endsWith("%}")) {
        this.problem("an expression must start with {% and end with %}");
      }
    } else if (Array.isArray(value)) {
      for (const [index, member] of value.entries()) this.at(index).template(member, place);
    } else if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) this.at(key).template(member, place);
    }
  }
}
