/** Workloads of what several callers hold at a time: the permits of a semaphore, the read-write lock. */
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { keys, terms } from "../terms.ts";
import type { WorkContext } from "./context.ts";
import { acquireAndHold, oftenLooking } from "./locks.ts";

const waiting = { waitMs: terms.waitMs, heartbeat: true, retry: oftenLooking } as const;

/** One permit or two, of three. */
export async function semaphoreTurn(context: WorkContext): Promise<void> {
  const { random, client } = context;
  const key = random.pick(keys.semaphore);
  const permits = random.chance(0.3) ? 2 : 1;
  const semaphore = new Semaphore(client, key, { permits: terms.permits });
  const acquire = () => semaphore.acquire({ ...waiting, permits });
  await acquireAndHold(context, "semaphore", key, { permits }, acquire, undefined, {
    kind: "permit",
    permits,
  });
}

/** More readers than writers. */
export async function readWriteTurn(context: WorkContext): Promise<void> {
  const { random, client } = context;
  const key = random.pick(keys.readWrite);
  const kind = random.chance(0.3) ? "write" : "read";
  const lock = new ReadWriteLock(client, key);
  const acquire = () => lock[kind](waiting);
  await acquireAndHold(context, "readWrite", key, { permits: 1 }, acquire, undefined, { kind });
}
