import { describe, expect, it } from "vitest";
import {
  callersAtOnce,
  judgeStock,
  type Reading,
  type Round,
  type StockEvidence,
} from "../scenarios/stock-levels-audit.ts";
import { grant, lost, type Mutable, testsOfAudit } from "./evidence.ts";

const before = { mug: 12, lamp: 30 };
const after = { mug: 17, lamp: 27 };

function given(round: Round, source: Reading["source"], value: Reading["value"], amount: number): Reading[] {
  return Array.from({ length: amount }, (_, index) => ({
    round,
    instance: `S${index + 1}`,
    source,
    ...(value && { value }),
  }));
}

function rightEvidence(): StockEvidence {
  return {
    readings: [
      ...given("cold", "computed", before, 1),
      ...given("cold", "otherCall", before, callersAtOnce.cold - 1),
      ...given("killed", "died", undefined, 1),
      ...given("killed", "stale", before, callersAtOnce.killed - 1),
      ...given("bereaved", "stale", before, callersAtOnce.bereaved),
      ...given("recovered", "computed", after, callersAtOnce.recovered),
      ...given("afterwards", "cache", after, callersAtOnce.afterwards),
    ],
    before,
    after,
    grants: [
      grant("S1", 7, 100),
      grant("S2", 8, 1000),
      grant("S3", 9, 5000, { from: { owner: "S2", fencingToken: 8, expiresAt: 4000 } }),
    ],
    tardy: [],
    log: [],
    computations: 3,
    killed: { instance: "S2", fencingToken: 8, wasRefused: true },
  };
}

function reading(
  evidence: Mutable<StockEvidence>,
  round: Round,
  source: Reading["source"],
): Mutable<Reading> {
  const found = evidence.readings.find((one) => one.round === round && one.source === source);
  if (found === undefined) throw new Error(`nobody was given ${source} in ${round}`);
  return found;
}

describe("the audit of the stock levels", () => {
  const fromS1 = { owner: "S1", fencingToken: 7, expiresAt: 1100 };
  const { spoilt } = testsOfAudit<StockEvidence>(judgeStock, rightEvidence, {
    "two callers that computed the same value": [
      (e) => {
        reading(e, "cold", "otherCall").source = "computed";
        e.computations = 4;
      },
      "callers that computed a value that nobody had",
      "callers that got it from that one",
      "computations, by their reads of the movements",
    ],
    "a computation that nobody answered with": [
      (e) => Object.assign(e, { computations: 4 }),
      "computations, by their reads of the movements",
    ],
    "a caller that failed": [
      (e) => Object.assign(reading(e, "cold", "otherCall"), { source: "failed", value: undefined }),
      "callers that got it from that one",
      "answers with a wrong value, or none",
    ],
    "a kill that did not happen": [
      (e) => Object.assign(reading(e, "killed", "died"), { source: "computed", value: after }),
      "callers killed while they computed it anew",
    ],
    "a caller that died by itself": [
      (e) => Object.assign(reading(e, "bereaved", "stale"), { source: "died", value: undefined }),
      "callers that got the old value meanwhile",
      "answers with a wrong value, or none",
    ],
    "an old value that is wrong": [
      (e) => Object.assign(reading(e, "bereaved", "stale"), { value: { mug: 17, lamp: 30 } }),
      "answers with a wrong value, or none",
    ],
    "a value that nobody computed again": [
      (e) => Object.assign(reading(e, "recovered", "computed"), { source: "stale", value: before }),
      "callers that computed it after the dead one's lease",
    ],
    "a computation while another was under way": [
      (e) => e.grants.splice(1, 0, grant("S9", 7.5, 150, { from: fromS1 })),
      "leases that overlapped in time",
      "takeovers, from",
    ],
    "a late write that landed": [
      (e) => Object.assign(e.killed, { wasRefused: false }),
      "the dead one's write, when it arrived",
    ],
    "a late write that was told to have been refused, and shows": [
      (e) => Object.assign(reading(e, "afterwards", "cache"), { value: { mug: 17, lamp: 30 } }),
      "callers afterwards, with the newer value",
      "answers with a wrong value, or none",
    ],
  });

  it("counts", () => {
    expect(judgeStock(rightEvidence()).inShort).toMatch(/^25 calls, 3 computations, the old value 7 times/);
  });

  it("says what came too late for the plan", () => {
    const late = spoilt((e) => {
      e.tardy.push("the calls came too late");
      Object.assign(reading(e, "cold", "otherCall"), { source: "timedOut", value: undefined });
      e.log.push(lost("S1", 7) as Mutable<StockEvidence>["log"][number]);
    });
    expect(judgeStock(late).late).toEqual([
      "the calls came too late",
      expect.stringContaining("gave no answer in its time"),
      expect.stringContaining("a lease of S1 ran out while it was alive"),
    ]);
  });
});
