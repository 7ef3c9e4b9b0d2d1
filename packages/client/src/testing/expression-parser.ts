import type { Item } from "../store.ts";

/** The names and values that an expression's placeholders stand for. */
export interface Placeholders {
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
}

/** An expression that DynamoDB would reject, or that uses a part of the language which is not executed here. */
export class ExpressionError extends Error {}

/**
 * Reads one expression of DynamoDB's language, token by token.
 *
 * Remembers which placeholders were used: DynamoDB rejects a request that defines one in vain.
 */
export class ExpressionReader {
  readonly used: Set<string> = new Set();
  readonly #placeholders: Placeholders;
  readonly #tokens: readonly string[];
  #position = 0;

  constructor(expression: string, placeholders: Placeholders) {
    this.#placeholders = placeholders;
    this.#tokens = expression.match(/[#:]?\w+|<>|<=|>=|[^\s\w]/g) ?? [];
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#tokens.length;
  }

  /** Takes the next token if it is this one; words are compared without regard to case. */
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

  /** Takes `#name` and gives the attribute that it stands for; undefined if something else comes. */
  takePath(): string | undefined {
    return this.#takePlaceholder("#", this.#placeholders.names);
  }

  /** Takes `:value` and gives what it stands for; undefined if something else comes. */
  takeValue(): string | number | undefined {
    return this.#takePlaceholder(":", this.#placeholders.values);
  }

  unexpected(wanted: string): ExpressionError {
    const found = this.#tokens[this.#position] ?? "the end";
    return new ExpressionError(`expected ${wanted}, found ${found} in: ${this.#tokens.join(" ")}`);
  }

  #takePlaceholder<Value>(sign: string, meanings: Readonly<Record<string, Value>>): Value | undefined {
    const token = this.#tokens[this.#position];
    if (!token?.startsWith(sign)) return undefined;
    const meaning = meanings[token];
    if (meaning === undefined) throw new ExpressionError(`${token} is not defined`);
    this.used.add(token);
    this.#position += 1;
    return meaning;
  }
}

/** Throws where a name or value was defined but not used, as DynamoDB does. */
export function checkAllUsed(placeholders: Placeholders, readers: readonly ExpressionReader[]): void {
  for (const placeholder of [...Object.keys(placeholders.names), ...Object.keys(placeholders.values)]) {
    if (!readers.some((reader) => reader.used.has(placeholder))) {
      throw new ExpressionError(`${placeholder} is defined but not used`);
    }
  }
}
