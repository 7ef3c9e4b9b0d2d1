import type { LeaseEvent } from "@leasehold/client";
import type { EngineClientConfig } from "@leasehold/local";
import type { JobOutcome } from "../functions/close-unpaid-orders/job.ts";

/** What an instance has to know before its first trigger. */
export interface Setup {
  readonly name: string;
  readonly clientConfig: EngineClientConfig;
  readonly leaseTable: string;
  readonly shopTable: string;
}

/** One delivery of one tick. */
export interface Trigger {
  readonly delivery: number;
  readonly tick: number;
  /** Epoch milliseconds. */
  readonly scheduledAt: number;
  /** Whoever runs stands still before the write of this order, counted from 0, until told to go on. */
  readonly holdAt: number | undefined;
}

/** From the demonstration to an instance. */
export type ToInstance =
  | { readonly type: "setup"; readonly setup: Setup }
  | { readonly type: "trigger"; readonly trigger: Trigger }
  | { readonly type: "goOn" };

/** A run that stands still: its lease has been checked, and the write is the next thing that it does. */
export interface Holding {
  readonly type: "holding";
  readonly tick: number;
  /** The order that it is about to close. */
  readonly orderId: string;
  /** How many it has closed. */
  readonly closed: number;
  readonly fencingToken: number;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** A lease event, with the tick whose trigger the instance was working on. */
export interface LeaseEventMessage {
  readonly type: "leaseEvent";
  readonly tick: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly event: LeaseEvent;
}

/** What an instance made of a trigger. */
export type Answer =
  | (JobOutcome & { readonly tookMs: number })
  /** The job rejected. */
  | { readonly result: "failed"; readonly problem: string }
  /** The process ended before it answered. */
  | { readonly result: "died" };

/** From an instance to the demonstration. */
export type FromInstance =
  | { readonly type: "ready" }
  | { readonly type: "answer"; readonly delivery: number; readonly answer: Answer }
  | Holding
  | LeaseEventMessage;
