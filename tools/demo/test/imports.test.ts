import { describe, expect, it } from "vitest";
import { judgeTransfers, type TransferEvidence } from "../scenarios/imports-audit.ts";
import { at, testsOfAudit } from "./evidence.ts";

const record = (states: readonly [string, number][]): TransferEvidence["import"] => ({
  status: "SUCCEEDED",
  startedAt: 0,
  states: states.map(([stateName, at]) => ({ stateName, at })),
});

function rightTransfers(): TransferEvidence {
  const chunk = (name: string, fencingToken: number) => ({ chunk: name, fencingToken });
  return {
    chunks: 2,
    leaseDurationMs: 3_000,
    promptlyMs: 3_000,
    import: record([
      ["Leasehold_Acquire", 10],
      ["Leasehold_StartKeeper", 20],
      ["Leasehold_Release", 20_000],
    ]),
    export: record([
      ["Leasehold_Acquire", 100],
      ["Leasehold_Park", 200],
      ["Leasehold_StartKeeper", 20_300],
    ]),
    imported: [chunk("a", 7), chunk("b", 7)],
    exported: [chunk("all", 8)],
    overslept: [],
    beats: Array.from({ length: 20 }, (_, index) => 1_000 * (index + 1)),
    beatTransitions: 49,
  };
}

describe("the audit of the transfers", () => {
  const { redIn, spoilt } = testsOfAudit<TransferEvidence>(judgeTransfers, rightTransfers, {
    "a workflow that failed": [
      (e) => Object.assign(e.import, { status: "FAILED" }),
      "workflows that succeeded",
    ],
    "a chunk that is missing": [(e) => e.imported.pop(), "chunks imported, once each"],
    "an import under two leases": [
      (e) => Object.assign(at(e.imported, 0), { fencingToken: 6 }),
      "fencing tokens of the import, from first to last",
    ],
    "an import that a few leases would have covered": [
      (e) => Object.assign(e, { leaseDurationMs: 10_000 }),
      "leases that the import outlived by its heartbeat",
    ],
    "a keeper that costs more": [
      (e) => Object.assign(e, { beatTransitions: 60 }),
      "state transitions for each beat of its keeper",
    ],
    "an export that did not wait": [(e) => e.export.states.splice(1, 1), "the export waited for the import"],
    "a wake-up that was lost": [
      (e) => {
        at(e.export.states, 2).at = 24_000;
        e.overslept.push(23_900);
      },
      "the release woke it",
    ],
    "an export that began too soon": [
      (e) => Object.assign(at(e.export.states, 2), { at: 19_000 }),
      "the release woke it",
    ],
    "a fencing token that did not grow": [
      (e) => Object.assign(at(e.exported, 0), { fencingToken: 7 }),
      "the export's fencing token is the larger one",
    ],
  });

  it("takes a slow wake-up for one, and its own clock's for none", () => {
    const slow = spoilt((e) => {
      at(e.export.states, 2).at = 29_000;
      e.overslept.push(16_000);
    });
    expect(redIn(slow)).toEqual([]);
  });

  it("says when the keeper came too late to keep the lease", () => {
    expect(judgeTransfers(spoilt((e) => e.beats.splice(4, 3))).late).toEqual([
      expect.stringContaining("only after 4.0 s"),
    ]);
  });
});
