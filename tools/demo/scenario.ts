import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import type { LocalApp, LocalAppEvent } from "@leasehold/local";
import type { Check } from "./check.ts";
import type { Gate } from "./gate.ts";
import type { LeaseChange } from "./lease-history.ts";
import type { System } from "./marks.ts";
import type { Screen } from "./screen.ts";
import type { Tempo } from "./tempo.ts";

/** What a scenario is played on. */
export interface Stage {
  readonly app: LocalApp;
  /** All that the functions say to DynamoDB goes through it. */
  readonly gate: Gate;
  /** A connection past the gate. */
  readonly documents: DynamoDBDocumentClient;
  readonly screen: Screen;
  /** The plan's times, as they are on this machine. */
  readonly tempo: Tempo;
  /** Every write of the lease table so far, in the order in which the table made them. */
  history(): Promise<readonly LeaseChange[]>;
}

/** What a scenario came to. */
export interface Outcome {
  readonly checks: readonly Check[];
  /** Some counts, for the last line; of use only if all checks hold. */
  readonly inShort: string;
  /** What came too late for the plan, in words. Nothing but a promise can be judged then. */
  readonly late: readonly string[];
}

/** One system of the app at work, with its planned incidents. */
export interface Scenario {
  readonly system: System;
  /** What the system does, and what happens to it, in a line for newcomers. */
  readonly about: string;
  /** Takes what happens in the app, in every system of it. */
  hear?(event: LocalAppEvent): void;
  /** Starts slow parts early, so that they do not disturb the rest later. */
  prepare?(): Promise<void>;
  /**
   * Plays it to the end, beside the others, and judges by its own evidence what came of it.
   *
   * Rejects with NotStaged where the plan cannot go on, since something of it did not come in its time.
   */
  play(): Promise<Outcome>;
}
