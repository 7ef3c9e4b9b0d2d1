import { type Check, check, type Outcome, promise } from "../scenario.ts";

/** A chunk that was transferred, as the table remembers it. */
export interface DoneChunk {
  readonly chunk: string;
  readonly fencingToken: number;
}

/** What became of one of the two workflows. */
export interface TransferRecord {
  readonly status: string;
  readonly startedAt: number;
  /** Names of the states that it entered, in order. */
  readonly states: readonly { readonly stateName: string; readonly at: number }[];
}

/** All that the audit looks at. */
export interface TransferEvidence {
  readonly chunks: number;
  readonly leaseDurationMs: number;
  readonly import: TransferRecord;
  readonly export: TransferRecord;
  /** When the export's waits ended by their own clock, and not by a release. */
  readonly overslept: readonly number[];
  readonly imported: readonly DoneChunk[];
  readonly exported: readonly DoneChunk[];
  /** How soon a release has to wake who waits for it. */
  readonly promptlyMs: number;
  /** When the import's keeper came to renew its lease: first before the work, then beat by beat. */
  readonly beats: readonly number[];
  /** The keeper's state transitions since the work began. */
  readonly beatTransitions: number;
}

/** Judges the long workflow and the one that waited for it. */
export function judgeTransfers(evidence: TransferEvidence): Outcome {
  return {
    checks: auditTransfers(evidence),
    inShort: summarizeTransfers(evidence),
    late: lateTransfers(evidence),
  };
}

function auditTransfers(evidence: TransferEvidence): Check[] {
  const { chunks, imported, exported, beats, beatTransitions } = evidence;
  const leases = leasesOf(evidence);
  const perBeat = beats.length < 2 ? 0 : beatTransitions / (beats.length - 1);
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
    check(
      "state transitions for each beat of its keeper",
      "at most 3",
      perBeat > 0 && perBeat <= 3 ? "at most 3" : perBeat,
    ),
    check(
      "the export waited for the import",
      "yes",
      yes(evidence.export.states.some(({ stateName }) => stateName === "Leasehold_Park")),
    ),
    check("the release woke it", "yes", wokenByRelease(evidence)),
    promise(
      "the export's fencing token is the larger one",
      "yes",
      yes(Math.max(...first) < Math.min(...second)),
    ),
  ];
}

/** Counts what happened, for the last line. */
function summarizeTransfers(evidence: TransferEvidence): string {
  const { imported, beats } = evidence;
  return (
    `${imported.length} chunks imported under one lock for ${leasesOf(evidence)} times its lease, ` +
    `${beats.length} heartbeats, then the export`
  );
}

/** Says what came too late for the plan. */
function lateTransfers({ beats, leaseDurationMs, import: record }: TransferEvidence): string[] {
  const times = [entered(record, "Leasehold_StartKeeper"), ...beats];
  const longest = Math.max(...beats.map((at, index) => at - (times[index] ?? at)));
  if (longest < leaseDurationMs) return [];
  const [gap, lease] = [longest, leaseDurationMs].map((ms) => `${(ms / 1000).toFixed(1)} s`);
  return [`the keeper of the import came to renew a lease of ${lease} only after ${gap}`];
}

/**
 * It did if the export's own clock did not end its wait after the release. Where that came in the same moment, the
 * export has to be quicker than that clock would let it be the next time.
 */
function wokenByRelease(evidence: TransferEvidence): string {
  const { import: importing, export: exporting, promptlyMs } = evidence;
  const released = entered(importing, "Leasehold_Release");
  const handOver = entered(exporting, "Leasehold_StartKeeper") - released;
  if (handOver < 0 || Number.isNaN(handOver)) return "no: it had the lock before";
  const overslept = evidence.overslept.some((at) => at >= released);
  return overslept && handOver >= promptlyMs ? `no: its own clock did, after ${handOver} ms` : "yes";
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
  return entered(record, "Leasehold_Release");
}

function tokens(done: readonly DoneChunk[]): number[] {
  return [...new Set(done.map(({ fencingToken }) => fencingToken))];
}

function yes(is: boolean): string {
  return is ? "yes" : "no";
}
