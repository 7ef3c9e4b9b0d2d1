// What callers without a type checker, other programs and attackers may give in place of a value. A value has a name that
// prints well, and is made anew for each use: many of them cannot be printed, copied or looked at.

import fc from "fast-check";

const refuses = (): never => {
  throw new Error("does not let itself be looked at");
};
const refusing: ProxyHandler<object> = {
  get: refuses,
  has: refuses,
  ownKeys: refuses,
  getPrototypeOf: refuses,
  getOwnPropertyDescriptor: refuses,
};

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function cyclic(): object {
  const self: Record<string, unknown> = {};
  self.self = self;
  return self;
}

/** Each is made anew, so that none is changed by one use for the next. */
export const hostiles: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  "-Infinity": () => Number.NEGATIVE_INFINITY,
  "-0": () => -0,
  "-1": () => -1,
  half: () => 0.5,
  huge: () => Number.MAX_VALUE,
  "beyond exact": () => 2 ** 53,
  "a year and more": () => 367 * 86_400_000,
  bigint: () => 10n,
  symbol: () => Symbol("hostile"),
  "well-known symbol": () => Symbol.iterator,
  true: () => true,
  false: () => false,
  "empty text": () => "",
  "long text": () => "k".repeat(2_049),
  "long text of two bytes": () => "ü".repeat(1_025),
  "lone surrogate": () => "a\ud800b",
  "NUL and newline": () => "a\u0000b\n",
  "terminal's escape": () => "\u001b[2J\u202e",
  __proto__text: () => "__proto__",
  constructorText: () => "constructor",
  "number as text": () => "30000",
  array: () => [],
  "array of itself": () => {
    const array: unknown[] = [];
    array.push(array);
    return array;
  },
  object: () => ({}),
  "object without prototype": () => Object.create(null),
  cyclic,
  "own __proto__": () =>
    JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  "throwing getters": () =>
    Object.defineProperties(
      {},
      Object.fromEntries(
        ["key", "leaseDurationMs", "toString", "then"].map((name) => [
          name,
          { enumerable: true, get: refuses },
        ]),
      ),
    ),
  "throwing toString": () => ({
    toString: refuses,
    valueOf: refuses,
    toJSON: refuses,
    [Symbol.toPrimitive]: refuses,
  }),
  "toString without text": () => ({ toString: () => ({}), valueOf: () => ({}) }),
  "refusing proxy": () => new Proxy({}, refusing),
  "refusing function": () => new Proxy(() => undefined, refusing),
  "revoked proxy": revoked,
  // biome-ignore lint/suspicious/noThenProperty: that is what is hostile about it.
  "thenable that never settles": () => ({ then: () => undefined }),
  function: () => () => undefined,
  date: () => new Date(0),
  "invalid date": () => new Date(Number.NaN),
  "latest date": () => new Date(8_640_000_000_000_000),
  error: () => new Error("not an option"),
  map: () => new Map([["key", "value"]]),
  bytes: () => new Uint8Array(3),
  "boxed text": () => Object("boxed"),
  "aborted signal": () => AbortSignal.abort(new Error("enough")),
  "aborted without reason": () => AbortSignal.abort(null),
  "aborted with what has no text": () => AbortSignal.abort(Object.create(null)),
  "getter that throws what has no text": () =>
    Object.defineProperty({}, "owner", {
      enumerable: true,
      get: () => {
        throw Object.create(null);
      },
    }),
  "abort controller": () => new AbortController(),
  "deep nesting": () => {
    let nested: unknown = 0;
    for (let level = 0; level < 20_000; level += 1) nested = [nested];
    return nested;
  },
};

/** Any text: of all letters, of names that objects have, of what is too long. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.string({ unit: "grapheme", maxLength: 30 }),
  fc.string({ unit: fc.nat({ max: 0xffff }).map((code) => String.fromCharCode(code)), maxLength: 10 }),
  fc.constantFrom(
    "",
    " ",
    "__proto__",
    "constructor",
    "toString",
    "a\u0000b",
    "\ud800",
    "k".repeat(2_048),
    "k".repeat(2_049),
  ),
);

/** Names of members that every object has; checked after each use. */
const objectNames = Reflect.ownKeys(Object.prototype).length;
const arrayNames = Reflect.ownKeys(Array.prototype).length;

/** Throws where a prototype of all objects has been changed. */
export function checkPrototypes(): void {
  const isPolluted = "polluted" in {};
  const isChanged =
    Reflect.ownKeys(Object.prototype).length !== objectNames ||
    Reflect.ownKeys(Array.prototype).length !== arrayNames;
  if (isPolluted || isChanged) throw new Error("a prototype of all objects was changed");
}
