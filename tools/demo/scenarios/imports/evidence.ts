/** A chunk that was transferred, as the table remembers it. */
export interface DoneChunk {
  readonly chunk: string;
  readonly by: string;
  readonly fencingToken: number;
}

/** What became of one of the two workflows. */
export interface TransferRecord {
  readonly status: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Names of the states that it entered, in order. */
  readonly states: readonly { readonly stateName: string; readonly at: number }[];
  /** When its waits ended by their own clock, and not by a release. */
  readonly overslept: readonly number[];
}

/** All that the audit looks at. */
export interface TransferEvidence {
  readonly chunks: number;
  readonly leaseDurationMs: number;
  readonly import: TransferRecord;
  readonly export: TransferRecord;
  readonly imported: readonly DoneChunk[];
  readonly exported: readonly DoneChunk[];
  /** How soon a release has to wake who waits for it. */
  readonly promptlyMs: number;
  /** When the import's keeper came to renew its lease: first before the work, then beat by beat. */
  readonly beats: readonly number[];
  /** The keeper's state transitions since the work began. */
  readonly beatTransitions: number;
}
