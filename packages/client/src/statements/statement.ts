/**
 * What a write says to DynamoDB, as text. A part is a clause or a few, as DynamoDB will read them; a statement is a row of
 * parts, joined once and known from then on by the parts themselves; a write is a statement and what fills it in.
 *
 *     #token    the attribute `token`
 *     #Ticket   with a capital: an attribute whose name the call gives, for it holds a token, an owner or an id
 *     :token    a value that the call gives
 *
 * Text is only ever joined. A write that is to say something else is another row of parts.
 */
import type { ItemKey } from "../base/schema.ts";
import type { TransactionEntry, UpdateRequest } from "../base/store.ts";

/** One idea of a statement. What several parts set, remove and insist on stands side by side. */
export interface Part {
  readonly set?: string;
  readonly remove?: string;
  /** Parentheses around every OR. */
  readonly when?: string;
}

/** A statement as it is sent, but for the values, and for the names that differ from call to call. */
interface Text {
  readonly update: string;
  readonly condition: string;
  readonly names: Names;
}

/** The attributes of the text, by placeholder. */
export type Names = Readonly<Record<`#${string}`, string>>;

/** What fills the text in, by placeholder. */
export type Values = Readonly<Record<`:${string}`, string | number>>;

/** DynamoDB's limit for an expression. */
const longestBytes = 4096;

/** A row of parts. The same row is always the same object, so that its text is joined once. */
export class Statement {
  readonly parts: readonly Part[];
  readonly #longer = new WeakMap<Part, Statement>();
  #text: Text | undefined;

  constructor(parts: readonly Part[]) {
    this.parts = parts;
  }

  /** The same with one part more. */
  with(part: Part): Statement {
    let longer = this.#longer.get(part);
    if (longer === undefined) {
      longer = new Statement([...this.parts, part]);
      this.#longer.set(part, longer);
    }
    return longer;
  }

  /** Joined at its first use. Throws for parts that do not go together: a mistake in the program, which every test meets. */
  get text(): Text {
    this.#text ??= joined(this.parts);
    return this.#text;
  }
}

const empty = new Statement([]);

/** Gives the statement of a row of parts. */
/* @__NO_SIDE_EFFECTS__ */
export function say(...parts: readonly Part[]): Statement {
  return parts.reduce((row: Statement, part) => row.with(part), empty);
}

/** Longer rows of numbered clauses are made for their call alone: there may be hundreds of them. */
const mostKept = 8;

/** Gives a part of so many clauses, numbered from 1 on, for a call that needs that many alike. */
/* @__NO_SIDE_EFFECTS__ */
export function times(clauseOf: (number: number) => Part): (count: number) => Part {
  const made = (count: number): Part =>
    merged(Array.from({ length: count }, (_, index) => clauseOf(index + 1)));
  const kept: Part[] = [];
  return (count) => {
    if (count > mostKept) return made(count);
    kept[count] ??= made(count);
    return kept[count];
  };
}

function merged(parts: readonly Part[]): Required<Part> {
  const all = (kind: keyof Part, by: string): string => parts.flatMap((part) => part[kind] || []).join(by);
  return { set: all("set", ", "), remove: all("remove", ", "), when: all("when", " AND ") };
}

function joined(parts: readonly Part[]): Text {
  const { set, remove, when } = merged(parts);
  const clauses = [...(set === "" ? [] : [`SET ${set}`]), ...(remove === "" ? [] : [`REMOVE ${remove}`])];
  const update = clauses.join(" ");
  if (Math.max(update.length, when.length) > longestBytes)
    throw new Error(`too long for DynamoDB: ${update} ${when}`);
  const changed = [...set.matchAll(/(#\w+) =/g), ...remove.matchAll(/(#\w+)/g)].map(([, name]) => name);
  const twice = changed.find((name, index) => changed.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`${twice} is changed twice: ${update}`);
  return { update, condition: when, names: Object.freeze(namesIn(`${update} ${when}`)) };
}

/** The attributes of an expression whose placeholders are `#` and the attribute's own name. */
export function namesIn(expression: string): Record<string, string> {
  const names: Record<string, string> = {};
  for (const [placeholder, name] of expression.matchAll(/#([a-z]\w*)/g)) names[placeholder] = name as string;
  return names;
}

/** One conditional write of one item. Its caller may add parts until it sends the write. */
export class Write {
  readonly key: ItemKey;
  statement: Statement;
  readonly values: Record<string, string | number>;
  /** Of attributes with a capital. */
  names: Record<string, string> | undefined;
  /** Whether the item is wanted after a success too; it costs the service a little time. @default false */
  returnsItem: boolean = false;
  /** Whether the whole item goes; only in a transaction. @default false */
  deletes: boolean = false;

  /** The values and names are the write's own from then on. */
  constructor(key: ItemKey, statement: Statement, values: Values = {}, names?: Names) {
    this.key = key;
    this.statement = statement;
    this.values = values as Record<string, string | number>;
    this.names = names as Record<string, string> | undefined;
  }

  /** Adds a part, and what fills it in. Parts may share a value, but no placeholder may be two things: that throws. */
  and(part: Part, values?: Values, names?: Names): this {
    this.statement = this.statement.with(part);
    if (values !== undefined) fillIn(this.values, values);
    if (names !== undefined) {
      this.names ??= {};
      fillIn(this.names, names);
    }
    return this;
  }

  /** Asks for the item after a success too. */
  returning(): this {
    this.returnsItem = true;
    return this;
  }

  /** Deletes the whole item, in a transaction. */
  deleting(): this {
    this.deletes = true;
    return this;
  }

  /** The write as a request of its own. */
  request(): UpdateRequest {
    const { key, values, returnsItem } = this;
    const { update, condition, names: own } = this.statement.text;
    const names = this.names === undefined ? own : { ...own, ...this.names };
    return { key, update, condition, names, values, returnsItem };
  }

  /** The write as an entry of a transaction: without anything to set or remove, a check of its conditions. */
  entry(): TransactionEntry {
    const { key, update, condition, names, values } = this.request();
    const action = this.deletes ? "delete" : update === "" ? "check" : { update };
    return { key, condition, names, values, action };
  }
}

function fillIn<T>(all: Record<string, T>, more: Readonly<Record<string, T>>): void {
  for (const placeholder in more) {
    const value = more[placeholder] as T;
    if (placeholder in all && all[placeholder] !== value) throw new Error(`${placeholder} is two things`);
    all[placeholder] = value;
  }
}
