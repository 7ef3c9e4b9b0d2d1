import type { LeaseClient } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { closeUnpaidOrdersKey } from "./job.ts";
import type { ParkedOrder } from "./order.ts";
import type { ParkedOrders } from "./parked-orders.ts";
import { openRuns } from "./runs.ts";

/** The orders that could not be closed. */
export interface ParkedAnswer {
  /** The earliest due first: 100 at most. */
  readonly parked: readonly ParkedOrder[];
}

/** The latest slot that is done. */
export interface SlotAnswer {
  readonly doneSlot: string | undefined;
}

/** What an operator's repair answers. */
export type RepairAnswer =
  | ParkedAnswer
  | SlotAnswer
  /** Whether the order was parked, and is open again. */
  | { readonly isPutBack: boolean }
  /** Whether the slot was the one that was done, and is not any more. */
  | (SlotAnswer & { readonly isTakenBack: boolean });

const mostShown = 100;

/** Lists the orders that could not be closed. */
export async function parkedOrders({
  parked,
}: {
  readonly parked: Pick<ParkedOrders, "list">;
}): Promise<ParkedAnswer> {
  return { parked: await parked.list(mostShown) };
}

/** Tells which slot keeps earlier ones out. */
export async function doneSlot({ leases }: { readonly leases: LeaseClient }): Promise<SlotAnswer> {
  return { doneSlot: await leases.doneSlot(closeUnpaidOrdersKey) };
}

/**
 * Takes back a slot that is done by mistake, at the lock and then in the run history: back to `to`, or to none.
 *
 * A slot that lies ahead would keep out every tick until then. Where the second step fails, the call can be repeated.
 */
export async function takeBackSlot(
  { leases }: { readonly leases: LeaseClient },
  slot: string,
  to: string | undefined,
): Promise<RepairAnswer> {
  const earlier = to === undefined ? {} : { to };
  const isTakenBack = await new LeaseAdmin(leases).takeBackSlot(closeUnpaidOrdersKey, {
    doneSlot: slot,
    ...earlier,
  });
  const runs = openRuns(leases, { key: closeUnpaidOrdersKey });
  const run = isTakenBack ? await runs.get(slot) : undefined;
  if (run?.state === "succeeded") await runs.takeBack(run);
  return { isTakenBack, doneSlot: await leases.doneSlot(closeUnpaidOrdersKey) };
}
