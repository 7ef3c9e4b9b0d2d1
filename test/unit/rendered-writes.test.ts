/** A write's text, to the letter: DynamoDB reads it, and state machines, policies and other programs' stores do too. */
import { describe, expect, it } from "vitest";
import {
  amended,
  render,
  renderConditions,
  renderEntry,
  type Write,
} from "../../packages/client/src/store/write.ts";

const key = { pk: "k", sk: "lease" };
const write = (parts: Partial<Write>): Write => ({ key, set: {}, insist: [], ...parts });
const updateOf = (parts: Partial<Write>): string => render(write(parts)).update;

let words = 0;
/** One that no write has named before: what a word's placeholders are called is remembered. */
function newWord(): string {
  words += 1;
  return `word${words}`;
}

describe("an update", () => {
  it("only sets, only removes, does both, or does nothing", () => {
    expect(updateOf({ set: { a: 1, b: "x" } })).toBe("SET #a = :a, #b = :b");
    expect(updateOf({ remove: ["a", "b"] })).toBe("REMOVE #a, #b");
    expect(updateOf({ set: { a: 1 }, remove: ["b"] })).toBe("SET #a = :a REMOVE #b");
    expect(updateOf({})).toBe("");
  });

  it("counts from a number and copies another attribute, with a value where that is missing", () => {
    const set = { a: { of: "a", from: 5, by: 1 }, b: { of: "c" }, d: { of: "c", from: "none" } };
    const { update, values } = render(write({ set }));
    expect(update).toBe("SET #a = if_not_exists(#a, :fromA) + :byA, #b = #c, #d = if_not_exists(#c, :fromD)");
    expect(values).toEqual({ ":fromA": 5, ":byA": 1, ":fromD": "none" });
  });

  it("has what an amendment sets and removes beside its own, and no more", () => {
    const own = write({ set: { a: 1 }, insist: [["a", "missing"]] });
    expect(amended(own, { remove: ["b"] }).remove).toEqual(["b"]);
    expect(amended(own, { set: { b: 2 }, insist: [["b", "exists"]] })).toEqual({
      key,
      set: { a: 1, b: 2 },
      remove: [],
      insist: [
        ["a", "missing"],
        ["b", "exists"],
      ],
    });
  });
});

describe("a condition", () => {
  it("tests for presence, compares with values and attributes, and takes one of several", () => {
    const { condition, names, values } = renderConditions([
      ["a", "exists"],
      ["b", "missing"],
      ["c", "<=", 7],
      ["d", "<>", { attribute: "e" }],
      {
        anyOf: [
          ["a", "=", ""],
          ["b", ">=", 0],
        ],
      },
    ]);
    expect(condition).toBe(
      "attribute_exists(#a) AND attribute_not_exists(#b) AND #c <= :ifC AND #d <> #e AND (#a = :ifA OR #b >= :ifB)",
    );
    expect(names).toEqual({ "#a": "a", "#b": "b", "#c": "c", "#d": "d", "#e": "e" });
    expect(values).toEqual({ ":ifC": 7, ":ifA": "", ":ifB": 0 });
  });

  it("compares one attribute with several values under numbered names", () => {
    const { condition, values } = renderConditions([
      ["a", ">=", 1],
      ["a", "<>", 2],
      ["a", "<", 3],
    ]);
    expect(condition).toBe("#a >= :ifA AND #a <> :ifA2 AND #a < :ifA3");
    expect(values).toEqual({ ":ifA": 1, ":ifA2": 2, ":ifA3": 3 });
  });
});

describe("the placeholders of an attribute", () => {
  it("are named after it where it is a word", () => {
    const word = newWord();
    const Word = `W${word.slice(1)}`;
    const { update, condition, names } = render(
      write({ set: { [word]: { of: word, from: 1, by: 2 }, other: 3 }, insist: [[word, "=", 4]] }),
    );
    expect(update).toBe(`SET #${word} = if_not_exists(#${word}, :from${Word}) + :by${Word}, #other = :other`);
    expect(condition).toBe(`#${word} = :if${Word}`);
    expect(names).toEqual({ [`#${word}`]: word, "#other": "other" });
    expect(updateOf({ set: { [word]: 1 } })).toBe(`SET #${word} = :${word}`);
  });

  it("are numbered where it is no word, for it may hold anything", () => {
    const [first, second] = [`${newWord()}:name`, `!${newWord()}`];
    const { update, condition, names } = render(
      write({ set: { [first]: 1, [second]: 2 }, insist: [[first, "=", 3]] }),
    );
    expect(update).toBe("SET #n0 = :n0, #n1 = :n1");
    expect(condition).toBe("#n0 = :ifN0");
    expect(names).toEqual({ "#n0": first, "#n1": second });
  });
});

describe("an entry of a transaction", () => {
  it("updates, deletes, or checks where there is nothing to write", () => {
    const insist: Write["insist"] = [["a", "exists"]];
    const action = (parts: Partial<Write>) => renderEntry(write({ insist, ...parts })).action;
    expect(action({ set: { a: 1 } })).toEqual({ update: "SET #a = :a" });
    expect(action({ deletes: true })).toBe("delete");
    expect(action({})).toBe("check");
  });
});
