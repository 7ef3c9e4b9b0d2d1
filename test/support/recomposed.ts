/** Writes with another text than the product's: for mistakes that are planted, and for items as a test wants them. */
import type { Item } from "@leasehold/client";
import type { ItemKey } from "@leasehold/client/schema";
import type { MemoryLeaseStore } from "@leasehold/client/testing";
import { type Part, say, Write } from "../../packages/client/src/statements/statement.ts";

/** The same write with other parts: each as `change` gives it, none where it gives undefined, and those that are added. */
export function recomposed(
  write: Write,
  change: (part: Part) => Part | undefined,
  added: Part = {},
  values: Readonly<Record<`:${string}`, string | number>> = {},
): Write {
  const parts = write.statement.parts.flatMap((part) => change(part) ?? []);
  const statement = say(...parts, added);
  const used = new Set(`${statement.text.update} ${statement.text.condition}`.match(/[#:]\w+/g));
  const usedOf = <T>(all: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(all).filter(([placeholder]) => used.has(placeholder)));
  const copy = new Write(
    write.key,
    statement,
    usedOf({ ...write.values, ...values }),
    usedOf(write.names ?? {}),
  );
  copy.returnsItem = write.returnsItem;
  copy.deletes = write.deletes;
  return copy;
}

/** The same write with no other condition than this one. */
export function insistingOn(
  write: Write,
  when: string,
  values: Readonly<Record<`:${string}`, string | number>> = {},
): Write {
  return recomposed(write, ({ when: _, ...part }) => part, { when }, values);
}

/**
 * The same write with other conditions: each operand of AND, as DynamoDB gets it, as `change` gives it; none where it gives
 * undefined. `attribute` is the first one that it names.
 */
export function withConditions(
  write: Write,
  change: (condition: string, attribute: string) => string | undefined,
): Write {
  const { names } = write.request();
  return recomposed(write, ({ when = "", ...part }) => {
    const changed = conditionsIn(when).flatMap((condition) => {
      const [placeholder = ""] = /#\w+/.exec(condition) ?? [];
      return change(condition, names[placeholder] ?? "") ?? [];
    });
    return { ...part, when: changed.join(" AND ") };
  });
}

/** The same write, which neither sets nor removes the attributes with these placeholders. */
export function leaving(write: Write, ...placeholders: readonly `#${string}`[]): Write {
  const isMeant = (clause: string): boolean => placeholders.some((one) => clause.split(" ")[0] === one);
  return recomposed(write, ({ set = "", remove = "", ...part }) => ({
    ...part,
    set: listed(set)
      .filter((clause) => !isMeant(clause))
      .join(", "),
    remove: listed(remove)
      .filter((clause) => !isMeant(clause))
      .join(", "),
  }));
}

/** The operands of AND outside parentheses. */
export function conditionsIn(condition: string): string[] {
  return condition.split(/ AND (?![^(]*\))/).filter((one) => one !== "");
}

/** What is listed by commas outside parentheses. */
function listed(clauses: string): string[] {
  return clauses.split(/, (?![^()]*\))/).filter((one) => one !== "");
}

/** A write that sets these attributes, which are words, on a condition that holds for any item; it asks for the item. */
export function setting(
  key: ItemKey,
  attributes: Readonly<Record<string, string | number>>,
  when = "attribute_not_exists(#none)",
): Write {
  const set = Object.keys(attributes)
    .map((name) => `#${name} = :${name}`)
    .join(", ");
  const values = Object.entries(attributes).map(([name, value]) => [`:${name}`, value]);
  return new Write(key, say({ set, when }), Object.fromEntries(values)).returning();
}

/** Puts an item into a table where there is none, as another program does, or the function that keeps the history. */
export function putItem(store: MemoryLeaseStore, item: Item): void {
  const { pk, sk, ...others } = item;
  const attributes = Object.entries(others);
  store.updateNow({
    key: { pk: String(pk), sk: String(sk) },
    update: `SET ${attributes.map((_, index) => `#n${index} = :v${index}`).join(", ")}`,
    condition: "attribute_not_exists(#pk)",
    names: Object.fromEntries([["#pk", "pk"], ...attributes.map(([name], index) => [`#n${index}`, name])]),
    values: Object.fromEntries(attributes.map(([, value], index) => [`:v${index}`, value])),
    returnsItem: false,
  });
}

/** What an update sets and removes, clause by clause, as DynamoDB gets it. */
export function clausesOf(update: string): {
  readonly set: readonly string[];
  readonly remove: readonly string[];
} {
  const [, set = "", remove = ""] = /^(?:SET (.*?))?(?: ?REMOVE (.*))?$/.exec(update) ?? [];
  return { set: listed(set), remove: listed(remove) };
}

/** What a write says, with its names and values filled in: what it sets by attribute, and the rest as lists. */
export function said(write: Write): {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
  readonly when: readonly string[];
} {
  const { update, condition, names, values } = write.request();
  const filled = (text: string): string =>
    text.replaceAll(/[#:]\w+/g, (one) => names[one] ?? JSON.stringify(values[one]));
  const { set, remove } = clausesOf(update);
  const assignments = set.map((clause) => filled(clause).split(/ = (.*)/));
  return {
    set: Object.fromEntries(assignments.map(([attribute = "", value = ""]) => [attribute, value])),
    remove: remove.map(filled),
    when: conditionsIn(condition).map(filled),
  };
}
