import type { Item } from "../../base/store.ts";

/** The names and values that an expression's placeholders stand for. */
export interface Placeholders {
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
}

/** The input of an expression: an item, and the meaning of every placeholder. */
export interface Scope extends Placeholders {
  readonly item: Item;
}

/** A parsed expression: its result, and the placeholders that it uses. */
export interface ParsedExpression<Result> {
  readonly placeholders: ReadonlySet<string>;
  /** All placeholders must be defined: {@link checkDefined}. */
  readonly evaluate: (scope: Scope) => Result;
}

/** An expression that DynamoDB would reject, or that uses an unsupported part of the language. */
export class ExpressionError extends Error {}

/** The most expressions that are remembered; then all are forgotten. */
const mostRemembered = 1_000;

/** Returns a parser that parses each text once: a program sends the same few expressions over and over. */
export function remembering<Result>(
  read: (reader: ExpressionReader) => ParsedExpression<Result>["evaluate"],
): (text: string) => ParsedExpression<Result> {
  const known = new Map<string, ParsedExpression<Result>>();
  return (text) => {
    let expression = known.get(text);
    if (expression === undefined) {
      const reader = new ExpressionReader(text);
      expression = { evaluate: read(reader), placeholders: reader.placeholders };
      if (!reader.isAtEnd) throw reader.unexpected("the end");
      if (known.size >= mostRemembered) known.clear();
      known.set(text, expression);
    }
    return expression;
  };
}

/** Reads one expression of DynamoDB's language, token by token. */
export class ExpressionReader {
  /** The placeholders so far. */
  readonly placeholders: Set<string> = new Set();
  readonly #tokens: readonly string[];
  #position = 0;

  constructor(expression: string) {
    this.#tokens = expression.match(/[#:]?\w+|<>|<=|>=|[^\s\w]/g) ?? [];
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#tokens.length;
  }

  /** Takes the next token if it is this one; letter case does not matter. */
  take(token: string): boolean {
    if (this.#tokens[this.#position]?.toUpperCase() !== token.toUpperCase()) return false;
    this.#position += 1;
    return true;
  }

  /** Takes one of several tokens. */
  takeAny<Token extends string>(tokens: readonly Token[]): Token | undefined {
    return tokens.find((token) => this.take(token));
  }

  expect(token: string): void {
    if (!this.take(token)) throw this.unexpected(token);
  }

  /** Takes `#name`, which stands for an attribute; undefined for any other token. */
  takeName(): string | undefined {
    return this.#takePlaceholder("#");
  }

  /** Takes `:value`, which stands for a caller's value; undefined for any other token. */
  takeValue(): string | undefined {
    return this.#takePlaceholder(":");
  }

  unexpected(wanted: string): ExpressionError {
    const found = this.#tokens[this.#position] ?? "the end";
    return new ExpressionError(`expected ${wanted}, found ${found} in: ${this.#tokens.join(" ")}`);
  }

  #takePlaceholder(sign: "#" | ":"): string | undefined {
    const token = this.#tokens[this.#position];
    if (!token?.startsWith(sign)) return undefined;
    this.placeholders.add(token);
    this.#position += 1;
    return token;
  }
}

/** The value of the attribute that a `#name` stands for; undefined if the item has none. */
export function attributeIn({ item, names }: Scope, name: string): string | number | undefined {
  return item[names[name] as string];
}

/** Throws if a name or value is used but not defined. */
export function checkDefined(
  { names, values }: Placeholders,
  { placeholders }: Pick<ParsedExpression<unknown>, "placeholders">,
): void {
  for (const placeholder of placeholders) {
    if (names[placeholder] === undefined && values[placeholder] === undefined)
      throw new ExpressionError(`${placeholder} is not defined`);
  }
}

/** Throws if a name or value is used but not defined, or defined but not used, as DynamoDB does. */
export function checkPlaceholders(
  { names, values }: Placeholders,
  expressions: readonly Pick<ParsedExpression<unknown>, "placeholders">[],
): void {
  for (const expression of expressions) checkDefined({ names, values }, expression);
  const checkUsed = (placeholder: string): void => {
    if (!expressions.some(({ placeholders }) => placeholders.has(placeholder)))
      throw new ExpressionError(`${placeholder} is defined but not used`);
  };
  for (const name in names) checkUsed(name);
  for (const value in values) checkUsed(value);
}
