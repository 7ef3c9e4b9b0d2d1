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
}

/** All that the audit looks at. */
export interface TransferEvidence {
  readonly chunks: number;
  readonly leaseDurationMs: number;
  readonly import: TransferRecord;
  readonly export: TransferRecord;
  readonly imported: readonly DoneChunk[];
  readonly exported: readonly DoneChunk[];
  /** Beats of the import's keeper, and the state transitions of its whole life. */
  readonly beats: number;
  readonly keeperTransitions: number;
}
