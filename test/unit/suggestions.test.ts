import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adviceFor } from "../../packages/client/src/options/suggestions.ts";

const known = [
  ...["leaseDurationMs", "heartbeat", "owner", "data", "signal", "lockAtLeastForMs", "reentrant", "slot"],
  ...["order", "waitMs", "retry", "tableName", "dynamodb", "clockSkewMs", "permits"],
];

describe("an option that is not known", () => {
  it.each([
    ["leaseDurationMs", "ttl ttlMs duration durationMs leaseMs lease leaseDuration expiresIn expiryMs"],
    ["leaseDurationMs", "lockAtMostFor lockAtMostForMs"],
    ["waitMs", "timeout timeoutMs waitTimeout waitTimeoutMs acquireTimeoutMs wait maxWaitMs"],
    ["retry", "retryDelay retries"],
    ["heartbeat", "keepAlive autoRenew autoExtend renewMs heartbeatMs heartbeatIntervalMs heartBeat"],
    ["owner", "holder ownerId"],
    ["data", "payload metadata"],
    ["signal", "abortSignal"],
    ["tableName", "table"],
    ["dynamodb", "client dynamodbClient documentClient dynamoDB"],
    ["clockSkewMs", "skewMs"],
    ["permits", "limit max"],
  ])("gets %s as advice, where callers of other libraries write %s", (meant, words) => {
    for (const word of words.split(" ")) expect(adviceFor(word, known), word).toBe(`did you mean ${meant}?`);
  });

  it("gets the name of the other bound of a job where only that is an option", () => {
    expect(adviceFor("lockAtMostFor", ["key", "lockAtMostForMs"])).toBe("did you mean lockAtMostForMs?");
  });

  it("gets the nearest name, the first of several, and none where too much is wrong", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 });
    fc.assert(
      fc.property(letters, fc.uniqueArray(letters, { maxLength: 5 }), (word, names) => {
        const most = Math.min(2, Math.floor(word.length / 3));
        const distances = names.map((name) => editDistance(word, name));
        const fewest = Math.min(...distances);
        const meant = fewest <= most ? names[distances.indexOf(fewest)] : undefined;
        expect(adviceFor(word, names)).toBe(meant && `did you mean ${meant}?`);
      }),
    );
  });
});

/** Levenshtein's distance, by its definition. */
function editDistance(one: string, other: string): number {
  if (one === "" || other === "") return one.length + other.length;
  const [a, b] = [one.slice(1), other.slice(1)];
  const changed = editDistance(a, b) + (one[0] === other[0] ? 0 : 1);
  return Math.min(changed, editDistance(a, other) + 1, editDistance(one, b) + 1);
}
