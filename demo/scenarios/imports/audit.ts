import { type Check, check } from "../../check.ts";
import type { DoneChunk, TransferEvidence, TransferRecord } from "./evidence.ts";

/** The export's own clock wakes it after 4 s at the soonest by then; the release has to be quicker. */
const promptlyMs = 3_000;

/** Judges the long workflow and the one that waited for it. */
export function auditTransfers(evidence: TransferEvidence): Check[] {
  const { chunks, imported, exported, beats, keeperTransitions } = evidence;
  const leases = leasesOf(evidence);
  const perBeat = beats === 0 ? 0 : Math.floor(keeperTransitions / beats);
  const handOver = entered(evidence.export, "StartKeeper") - entered(evidence.import, "Release");
  const [first, second] = [tokens(imported), tokens(exported)];
  return [
    check("workflows that succeeded", "import, export", succeeded(evidence)),
    check("chunks imported, once each", chunks, new Set(imported.map(({ chunk }) => chunk)).size),
    check("fencing tokens of the import, from first to last", 1, first.length),
    check(
      "leases that the import outlived by its heartbeat",
      "5 or more",
      leases >= 5 ? "5 or more" : leases,
    ),
    check("state transitions for each beat of its keeper", 4, perBeat),
    check(
      "the export waited for the import",
      "yes",
      yes(evidence.export.states.some(({ stateName }) => stateName === "Park")),
    ),
    check(
      "the release woke it",
      "promptly",
      handOver >= 0 && handOver < promptlyMs ? "promptly" : `after ${handOver} ms`,
    ),
    check(
      "the export's fencing token is the larger one",
      "yes",
      yes(Math.max(...first) < Math.min(...second)),
    ),
  ];
}

/** Counts what happened, for the last line. */
export function summarizeTransfers(evidence: TransferEvidence): string {
  const { imported, beats } = evidence;
  return (
    `${imported.length} chunks imported under one lock for ${leasesOf(evidence)} times its lease, ` +
    `${beats} heartbeats, then the export`
  );
}

/** How many times its lease the import lasted. */
function leasesOf({ import: record, leaseDurationMs }: TransferEvidence): number {
  return Math.floor((endOfWork(record) - record.startedAt) / leaseDurationMs);
}

function succeeded(evidence: TransferEvidence): string {
  const both = ["import", "export"] as const;
  return both.filter((kind) => evidence[kind].status === "SUCCEEDED").join(", ");
}

function entered({ states }: TransferRecord, name: string): number {
  return states.findLast(({ stateName }) => stateName === name)?.at ?? Number.NaN;
}

function endOfWork(record: TransferRecord): number {
  return entered(record, "Release");
}

function tokens(done: readonly DoneChunk[]): number[] {
  return [...new Set(done.map(({ fencingToken }) => fencingToken))];
}

function yes(is: boolean): string {
  return is ? "yes" : "no";
}
