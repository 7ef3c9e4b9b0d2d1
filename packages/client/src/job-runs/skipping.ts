import { LeaseUnavailableError, SlotDoneError } from "../errors.ts";
import { type Skip, skip } from "../expressions-job-runs.ts";
import { callStore, type ProtocolContext } from "../protocol/context.ts";
import { claimableIn, type Judge } from "../protocol/judge.ts";
import { type LeaseRecord, lastDoneSlot, readRecord } from "../record.ts";
import { runAttributeNames } from "../schema-job-runs.ts";
import type { UpdateResult } from "../store.ts";

/**
 * Skips a slot: 1 request, or 2 where its last attempt's lease may be taken over.
 *
 * A slot that is skipped already stays as it is, so that a skip whose answer was lost finds itself. Rejects with
 * SlotDoneError when the slot has succeeded, and with LeaseUnavailableError while an attempt runs.
 */
export async function skipSlot(context: ProtocolContext, judge: Judge, request: Skip): Promise<void> {
  const send = (judged: LeaseRecord | undefined): Promise<UpdateResult> =>
    callStore(context, (store, call) => store.update(skip(request, judged), call));

  const first = await send(undefined);
  if (isSkipped(first, request)) return;
  const seen = readRecord(first.item);
  const verdict = seen && judge.judge(seen, first.offset);
  if (verdict?.expired !== true) throw unavailable(request, seen, verdict ? claimableIn(verdict) : 0);

  const second = await send(seen);
  if (isSkipped(second, request)) return;
  const now = readRecord(second.item);
  throw unavailable(request, now, now ? claimableIn(judge.judge(now, second.offset)) : 0);
}

function isSkipped({ applied, item }: UpdateResult, { job, slot }: Skip): boolean {
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
