/** A write's text, to the letter: DynamoDB reads it, and state machines, policies and other programs' stores do too. */
import { describe, expect, it } from "vitest";
import { namesIn, type Part, say, times, Write } from "../../packages/client/src/statements/statement.ts";

const key = { pk: "k", sk: "lease" };
const first: Part = { set: "#a = :a", remove: "#b", when: "#a < :a" };
const second: Part = { set: "#c = :c", when: "(#c = :c OR attribute_exists(#Own))" };

describe("a statement", () => {
  it("is the clauses of its parts side by side, and the attributes that they name", () => {
    expect(say(first, second).text).toEqual({
      update: "SET #a = :a, #c = :c REMOVE #b",
      condition: "#a < :a AND (#c = :c OR attribute_exists(#Own))",
      names: { "#a": "a", "#b": "b", "#c": "c" },
    });
  });

  it("only sets, only removes, or only insists", () => {
    expect(say({ set: "#a = :a" }).text).toMatchObject({ update: "SET #a = :a", condition: "" });
    expect(say({ remove: "#a" }).text).toMatchObject({ update: "REMOVE #a", condition: "" });
    expect(say({ when: "#a = :a" }).text).toMatchObject({ update: "", condition: "#a = :a" });
    expect(say().text).toEqual({ update: "", condition: "", names: {} });
  });

  it("is the same object for the same row of parts, and another one for another order", () => {
    expect(say(first).with(second)).toBe(say(first, second));
    expect(say(first, second).text).toBe(say(first, second).text);
    expect(say(second, first)).not.toBe(say(first, second));
  });

  it.each([
    ["sets an attribute twice", { set: "#a = :other" }],
    ["sets and removes an attribute", { remove: "#a" }],
  ])("that %s is refused, as by DynamoDB", (_, part) => {
    expect(() => say(first, part).text).toThrow("#a is changed twice");
  });

  it("that sets an attribute of a longer name twice is refused, too", () => {
    expect(() => say({ set: "#owner = :owner" }, { set: "#owner = :other" }).text).toThrow(
      "#owner is changed twice",
    );
  });

  it("is as long as DynamoDB takes it, and no longer", () => {
    const of = (bytes: number): Part => ({ when: "x".repeat(bytes) });
    expect(say(of(4_096)).text.condition).toHaveLength(4_096);
    expect(() => say(of(4_097)).text).toThrow("too long for DynamoDB");
    expect(() => say({ remove: "x".repeat(4_097) }).text).toThrow("too long for DynamoDB");
  });
});

describe("parts of which a call needs so many alike", () => {
  const gone = times((n) => ({ remove: `#S${n}, #F${n}`, when: `#F${n} = :f${n}` }));

  it("are numbered from 1 on, and the few that most calls need are made once", () => {
    expect(say(gone(2)).text).toEqual({
      update: "REMOVE #S1, #F1, #S2, #F2",
      condition: "#F1 = :f1 AND #F2 = :f2",
      names: {},
    });
    expect(gone(2)).toBe(gone(2));
    expect(gone(3)).not.toBe(gone(2));
  });

  it("are nothing for none", () => {
    expect(say(gone(0)).text).toEqual({ update: "", condition: "", names: {} });
  });
});

describe("a write", () => {
  const write = () => new Write(key, say(first), { ":a": 1 });

  it("is a request with what fills its statement in", () => {
    expect(write().request()).toEqual({
      ...{ key, update: "SET #a = :a REMOVE #b", condition: "#a < :a", returnsItem: false },
      ...{ names: { "#a": "a", "#b": "b" }, values: { ":a": 1 } },
    });
    expect(write().returning().request().returnsItem).toBe(true);
  });

  it("says more with each part that is added, with its values and with names that only the call knows", () => {
    const { update, names, values } = write().and(second, { ":c": "x" }, { "#Own": "o:me" }).request();
    expect(update).toBe("SET #a = :a, #c = :c REMOVE #b");
    expect(names).toEqual({ "#a": "a", "#b": "b", "#c": "c", "#Own": "o:me" });
    expect(values).toEqual({ ":a": 1, ":c": "x" });
  });

  it("leaves others of the same statement as they are", () => {
    const other = write();
    write().and(second, { ":c": "x" }, { "#Own": "o:me" });
    expect(other.request()).toEqual(write().request());
  });

  it("may be given the same value twice, and never two for one placeholder", () => {
    expect(write().and(second, { ":a": 1, ":c": 2 }).values).toEqual({ ":a": 1, ":c": 2 });
    expect(() => write().and(second, { ":a": 2 })).toThrow(":a is two things");
    const named = write().and(second, { ":c": 1 }, { "#Own": "o:me" });
    expect(() => named.and({}, {}, { "#Own": "o:you" })).toThrow("#Own is two things");
  });

  it("is an entry of a transaction: an update, a deletion, or a check where there is nothing to write", () => {
    const check = () => new Write(key, say({ when: "#a = :a" }), { ":a": 1 });
    expect(write().entry().action).toEqual({ update: "SET #a = :a REMOVE #b" });
    expect(check().entry().action).toBe("check");
    expect(check().deleting().entry()).toEqual({
      ...{ key, condition: "#a = :a", names: { "#a": "a" }, values: { ":a": 1 }, action: "delete" },
    });
  });
});

it("placeholders with a capital are the call's own to name", () => {
  expect(namesIn("#pk = :key AND #Ticket = :ticket")).toEqual({ "#pk": "pk" });
});
