/**
 * Operators close a slot without a run, or open one that is done.
 * Each write is refused when the slot is not as the caller has read it.
 */
import type { LeaseRecord, UpdateResult } from "@leasehold/client";
import {
  type Core,
  LeaseUnavailableError,
  lastDoneSlot,
  readRecord,
  SlotDoneError,
  transact,
  type Write,
} from "@leasehold/client/internal";
import { attemptsWithLost } from "./attempt-history.ts";
import { type RunTakenBack, type Skip, skip, takeBackWrite } from "./expressions.ts";
import { runAttributeNames } from "./schema.ts";

/**
 * Skips a slot: 1 request, or 2 when the lease of its last attempt has expired. With a trace, each is a transaction.
 *
 * A slot that is already skipped stays as it is, so a repeated skip succeeds. Rejects with SlotDoneError when the
 * slot has succeeded, and with LeaseUnavailableError while an attempt runs.
 */
export async function skipSlot(core: Core, request: Skip, trace: Write | undefined): Promise<void> {
  const { detector } = core;
  const send = async (write: Write): Promise<SkipAnswer> => {
    if (trace === undefined) return await core.update(write);
    const { applied, refusals } = await transact(core, [write, trace]);
    return { applied, item: refusals[0]?.item };
  };
  const first = await send(skip(request, undefined));
  if (isSkipped(first, request)) return;
  const seen = readRecord(first.item);
  const expiry = seen && detector.judge(seen);
  if (seen === undefined || expiry?.reason === undefined) {
    throw unavailable(request, seen, expiry?.claimableInMs ?? 0);
  }

  const second = await send(skip(request, seen, attemptsWithLost(first.item, seen, request.now)));
  if (isSkipped(second, request)) return;
  const now = readRecord(second.item);
  throw unavailable(request, now, now ? detector.judge(now).claimableInMs : 0);
}

type SkipAnswer = Pick<UpdateResult, "applied" | "item">;

function isSkipped({ applied, item }: SkipAnswer, { job, slot }: Skip): boolean {
  if (applied || item?.[runAttributeNames.state] === "skipped") return true;
  const done = lastDoneSlot(item);
  if (done !== undefined) throw new SlotDoneError(job, slot, done);
  return false;
}

function unavailable(
  { job }: Skip,
  record: LeaseRecord | undefined,
  claimableInMs: number,
): LeaseUnavailableError {
  return new LeaseUnavailableError(job, record, Math.ceil(claimableInMs));
}

/**
 * Opens a slot that is done, if it is unchanged: 1 request. Resolves to whether the slot is open, also when an
 * earlier copy of this request has opened it.
 */
export async function takeBackRun(core: Core, request: RunTakenBack): Promise<boolean> {
  const { applied, item } = await core.update(takeBackWrite(request));
  if (applied) return true;
  const isAsSeen = Number(item?.[runAttributeNames.attempt] ?? 0) === request.attempt;
  return item !== undefined && isAsSeen && readRecord(item) === undefined && lastDoneSlot(item) === undefined;
}
