/** Workloads of what several callers hold at a time: the permits of a semaphore, the read-write lock. */
import type { Lease } from "@leasehold/client";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { type HoldKind, microseconds, type Primitive } from "../history.ts";
import { keys, terms } from "../terms.ts";
import { outcomeOf, type WorkContext } from "./context.ts";
import { letGo, oftenLooking } from "./locks.ts";

const waiting = { waitMs: terms.waitMs, heartbeat: true, retry: oftenLooking } as const;

/** One permit or two, of three. */
export async function semaphoreTurn(context: WorkContext): Promise<void> {
  const { random, client } = context;
  const key = random.pick(keys.semaphore);
  const permits = random.chance(0.3) ? 2 : 1;
  const semaphore = new Semaphore(client, key, { permits: terms.permits });
  await seat(context, { primitive: "semaphore", kind: "permit", key, permits }, async () => {
    return await semaphore.acquire({ ...waiting, permits });
  });
}

/** More readers than writers. */
export async function readWriteTurn(context: WorkContext): Promise<void> {
  const { random, client } = context;
  const key = random.pick(keys.readWrite);
  const kind = random.chance(0.3) ? "write" : "read";
  const lock = new ReadWriteLock(client, key);
  await seat(context, { primitive: "readWrite", kind, key, permits: 1 }, async () => {
    return await (kind === "write" ? lock.write(waiting) : lock.read(waiting));
  });
}

interface SeatTerms {
  readonly primitive: Primitive;
  readonly kind: HoldKind;
  readonly key: string;
  readonly permits: number;
}

async function seat(context: WorkContext, seat: SeatTerms, acquire: () => Promise<Lease>): Promise<void> {
  const { primitive, kind, key, permits } = seat;
  const since = microseconds();
  const answer = context.journal.call(primitive, kind, key, { permits });
  let lease: Lease;
  try {
    lease = await acquire();
  } catch (error) {
    const { outcome, code } = outcomeOf(error);
    return answer(outcome, { code });
  }
  const { fencingToken } = lease;
  answer("ok", { fencingToken });
  await context.hold(lease, { ...seat, fencingToken, since });
  await letGo(context, primitive, key, lease);
}
