import type { Item } from "../../base/store.ts";
import { say, Write } from "../../statements/statement.ts";

/**
 * A conditional write of one item. Expressions are DynamoDB's own, where `#name` is the attribute of that name, and numbers
 * and texts are written in JSON: `#n = if_not_exists(#n, 0) + 1`.
 */
export interface ItemWrite {
  readonly set?: string;
  readonly remove?: string;
  /** @default - a condition that holds for every item of a check, and for a missing item */
  readonly when?: string;
  /** Values that are not written in an expression, by placeholder. */
  readonly values?: Readonly<Record<`:${string}`, string | number>>;
}

const always = "attribute_not_exists(#never)";

/** A number, or a text in JSON; no part of a name. */
const literal = /"(?:[^"\\]|\\.)*"|(?<![\w#:])-?\d+\b/g;

/** A write of an item: as a request, or as an entry of a transaction. */
export function writeOf(key: Write["key"], { set, remove, when = always, values }: ItemWrite): Write {
  const all: Record<`:${string}`, string | number> = { ...values };
  const filled = (expression: string): string =>
    expression.replaceAll(literal, (text) => {
      const placeholder = `:v${Object.keys(all).length}` as const;
      all[placeholder] = JSON.parse(text) as string | number;
      return placeholder;
    });
  const part = {
    ...(set !== undefined && { set: filled(set) }),
    ...(remove !== undefined && { remove }),
    when: filled(when),
  };
  return new Write(key, say(part), all);
}

/** A write that sets attributes of any name, whatever the item holds. */
export function putOf(key: Write["key"], attributes: Item): Write {
  const entries = Object.entries(attributes);
  const set = entries.map((_, index) => `#N${index} = :n${index}`).join(", ");
  const values = entries.map(([, value], index) => [`:n${index}`, value]);
  const names = entries.map(([name], index) => [`#N${index}`, name]);
  return new Write(key, say({ set, when: always }), Object.fromEntries(values), Object.fromEntries(names));
}
