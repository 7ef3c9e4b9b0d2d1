/**
 * A conditional write of one item as data: what it sets, removes and insists on. `render` turns it into DynamoDB's
 * expressions.
 */
import type { ItemKey } from "../../base/schema.ts";
import type { TransactionEntry, UpdateRequest } from "../../base/store.ts";

type Value = string | number;

/** A number that the service counts: what `of` holds, or `from` where the item has no such attribute, plus `by`. */
export interface Count {
  readonly of: string;
  readonly from: number;
  readonly by: number;
}

/** Another attribute of the same item, as the service finds it. */
export interface Attribute {
  readonly attribute: string;
}

/** A new value that is copied from another attribute, as the service finds it before the write. */
export interface Copy {
  readonly of: string;
  /** The value where that attribute is missing. @default - the service then refuses the write as invalid */
  readonly from?: Value;
}

/** A test of one attribute. Where the attribute is missing, only `<>` and `missing` hold. */
export type AttributeTest =
  | readonly [attribute: string, comparison: "=" | "<>" | "<" | "<=" | ">=", value: Value | Attribute]
  | readonly [attribute: string, presence: "exists"]
  | readonly [attribute: string, absence: "missing"];

/** A test, or several of which one has to hold. */
export type Condition = AttributeTest | { readonly anyOf: readonly AttributeTest[] };

/** One conditional write of one item. */
export interface ItemWrite {
  readonly key: ItemKey;
  /** New values by attribute. */
  readonly set: Readonly<Record<string, Value | Count | Copy>>;
  readonly remove?: readonly string[];
  /** All of them have to hold, as one moment's item shows them; otherwise nothing is written. */
  readonly insist: readonly Condition[];
  /** Whether the item is wanted after a success too; it costs the service a little time. @default false */
  readonly returnsItem?: boolean;
  /** Whether the whole item goes, in place of anything set or removed; only in a transaction. @default false */
  readonly deletes?: boolean;
}

/** Turns a write into DynamoDB's expressions. A value's placeholder is named after its attribute: `:owner`, `:ifToken`. */
export function render(write: ItemWrite): UpdateRequest {
  const expression = new ExpressionWriter();
  const update = expression.update(write);
  const condition = expression.condition(write.insist);
  const { names, values } = expression;
  return { key: write.key, update, condition, names, values, returnsItem: write.returnsItem ?? false };
}

/** Turns a write into an entry of a transaction: without anything to set or remove, a check of its conditions. */
export function renderEntry(write: ItemWrite): TransactionEntry {
  const { key, update, condition, names, values } = render(write);
  const action = write.deletes ? "delete" : update === "" ? "check" : { update };
  return { key, condition, names, values, action };
}

/** What a value is there for: to be set, to be compared with, or to count from or by. */
type Role = "set" | "if" | "from" | "by";

/** What an attribute and its values are called in expressions. */
type AttributePlaceholders = Readonly<Record<"name" | Role, string>>;

class ExpressionWriter {
  readonly names: Record<string, string> = {};
  readonly values: Record<string, Value> = {};
  readonly #placeholders = new Map<string, AttributePlaceholders>();

  update({ set, remove = [] }: ItemWrite): string {
    let setting = "";
    for (const attribute in set) {
      const placeholders = this.#placeholdersOf(attribute);
      const operand = this.#operand(placeholders, set[attribute] as Value | Count | Copy);
      setting += `${setting === "" ? "SET " : ", "}${placeholders.name} = ${operand}`;
    }
    let removing = "";
    for (const attribute of remove) {
      removing += `${removing === "" ? "REMOVE " : ", "}${this.#placeholdersOf(attribute).name}`;
    }
    return setting !== "" && removing !== "" ? `${setting} ${removing}` : setting + removing;
  }

  condition(insist: readonly Condition[]): string {
    const conditions = insist.map((condition) =>
      "anyOf" in condition
        ? `(${condition.anyOf.map((test) => this.#test(test)).join(" OR ")})`
        : this.#test(condition),
    );
    return conditions.join(" AND ");
  }

  #test([attribute, comparison, operand]: AttributeTest): string {
    const { name, if: placeholder } = this.#placeholdersOf(attribute);
    if (comparison === "exists") return `attribute_exists(${name})`;
    if (comparison === "missing") return `attribute_not_exists(${name})`;
    const isAttribute = typeof operand === "object";
    const other = isAttribute
      ? this.#placeholdersOf(operand.attribute).name
      : this.#value(placeholder, operand);
    return `${name} ${comparison} ${other}`;
  }

  #operand(placeholders: AttributePlaceholders, value: Value | Count | Copy): string {
    if (typeof value !== "object") return this.#value(placeholders.set, value);
    const { of, from, by } = value as Copy & { readonly by?: number };
    const { name } = this.#placeholdersOf(of);
    const current =
      from === undefined ? name : `if_not_exists(${name}, ${this.#value(placeholders.from, from)})`;
    return by === undefined ? current : `${current} + ${this.#value(placeholders.by, by)}`;
  }

  /** Placeholders are short: an expression may have 4 KB. */
  #value(placeholder: string, value: Value): string {
    let free = placeholder;
    for (let other = 2; free in this.values; other += 1) free = `${placeholder}${other}`;
    this.values[free] = value;
    return free;
  }

  /** What an attribute and its values are called here; its name counts as used. */
  #placeholdersOf(attribute: string): AttributePlaceholders {
    let placeholders = this.#placeholders.get(attribute);
    if (placeholders === undefined) {
      const isWord = /^\w+$/.test(attribute);
      placeholders = placeholdersFor(isWord ? attribute : `n${this.#placeholders.size}`);
      this.#placeholders.set(attribute, placeholders);
    }
    this.names[placeholders.name] = attribute;
    return placeholders;
  }
}

function placeholdersFor(word: string): AttributePlaceholders {
  const capital = word.charAt(0).toUpperCase() + word.slice(1);
  return {
    name: `#${word}`,
    set: `:${word}`,
    if: `:if${capital}`,
    from: `:from${capital}`,
    by: `:by${capital}`,
  };
}
