/**
 * The history of a run's attempts: JSON text in the run's own item, so that it costs no request.
 *
 * The end of an attempt without success adds it; the caller that takes over or skips a lost attempt adds that one. A
 * run that succeeds at its first attempt stores nothing. Only the latest attempts are kept, because every renewal is
 * billed for the whole item.
 */
import type { Item, LeaseRecord } from "@leasehold/client";
import { attributeNames, isWhole, optionalWholeIn, parsedJson, utf8Bytes } from "@leasehold/client/internal";
import { runAttributeNames, runLimits } from "./schema.ts";

/** One attempt at a run. */
export interface JobRunAttempt {
  /** Its number, from 1. */
  readonly attempt: number;
  /**
   * `failed`: its work ended with an error. `lost`: its lease ended without an outcome; its process may have died. Only
   * the latest attempt is `running` or `succeeded`.
   */
  readonly state: "running" | "succeeded" | "failed" | "lost";
  /** Of an attempt before the latest, its first 128 bytes. */
  readonly owner: string | undefined;
  /** When it began, in epoch milliseconds of its owner's clock. */
  readonly startedAt: number | undefined;
  /** When it ended. For a lost attempt: when its lease ended. */
  readonly endedAt: number | undefined;
  /** The remark; of an attempt before the latest, its first 128 bytes. */
  readonly remark: string | undefined;
}

/** Reads the attempts that have ended and are stored, the oldest first. Text of another form counts as none. */
export function storedAttempts(item: Item | undefined): readonly JobRunAttempt[] {
  const text = item?.[runAttributeNames.attempts];
  const list = typeof text === "string" ? parsedJson(text)?.value : undefined;
  return Array.isArray(list) ? list.filter((one) => isWhole(Object(one).attempt)) : [];
}

/** Adds an attempt that has ended to those that an item stores; gives their text. */
export function attemptsWith(item: Item | undefined, ended: JobRunAttempt): string {
  const stored = (text = ""): string | undefined => cut(text, runLimits.pastTextBytes);
  const added = { ...ended, owner: stored(ended.owner), remark: stored(ended.remark) };
  return JSON.stringify([...storedAttempts(item), added].slice(-runLimits.pastAttempts));
}

/**
 * Adds the attempt of a lease that has expired, or is taken over, to those of its item; undefined if the item shows
 * another lease.
 */
export function attemptsWithLost(
  item: Item | undefined,
  lost: LeaseRecord,
  takenAt: number,
): string | undefined {
  if (item?.[attributeNames.token] !== lost.token) return undefined;
  const attempt = optionalWholeIn(item, runAttributeNames.attempt);
  if (attempt === undefined) return undefined;
  const { owner, acquiredAt: startedAt, expiresAt } = lost;
  const endedAt = Math.min(expiresAt, takenAt);
  return attemptsWith(item, { attempt, state: "lost", owner, startedAt, endedAt, remark: undefined });
}

/** Cuts a text between characters, so that it has at most so many bytes; undefined for an empty text. */
export function cut(text: string, mostBytes: number): string | undefined {
  const whole = String(text).toWellFormed();
  if (whole === "") return undefined;
  if (utf8Bytes(whole) <= mostBytes) return whole;
  const room = new Uint8Array(mostBytes - utf8Bytes("…"));
  const { read } = new TextEncoder().encodeInto(whole, room);
  return `${whole.slice(0, read)}…`;
}
