import { type Lease, LeaseError } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import type { Primitive } from "../history.ts";
import { keys, terms } from "../terms.ts";
import type { WorkContext } from "./context.ts";
import { finishSlots, finishTasks, jobRunsOf, taskSetOf } from "./jobs.ts";

const waiting = { waitMs: terms.auditWaitMs, heartbeat: true } as const;
/** Attempts of dead processes are over after the first ones. */
const tries = 12;

/** After all is over: gets every lock, all permits of every semaphore, and does what was left undone. */
export async function audit(context: WorkContext): Promise<void> {
  const { client } = context;
  const { permits, maxWaiters } = terms;
  const acquire = (primitive: Primitive, key: string, call: () => Promise<Lease>): Promise<void> =>
    audited(context, primitive, key, async () => {
      await (await call()).release();
      return "";
    });
  const alone = (primitive: Primitive) => (key: string) =>
    acquire(primitive, key, () => client.acquire(key, waiting));
  const audits: Readonly<Record<Primitive, (key: string) => Promise<void>>> = {
    lock: alone("lock"),
    shared: alone("shared"),
    operated: alone("operated"),
    group: alone("group"),
    leader: alone("leader"),
    fair: (key) =>
      acquire("fair", key, () => client.acquire(key, { ...waiting, order: fair({ maxWaiters }) })),
    semaphore: (key) =>
      acquire("semaphore", key, () =>
        new Semaphore(client, key, { permits }).acquire({ ...waiting, permits }),
      ),
    readWrite: (key) => acquire("readWrite", key, () => new ReadWriteLock(client, key).write(waiting)),
    singleFlight: (key) =>
      audited(context, "singleFlight", key, async () => {
        const flights = new SingleFlight(client, { freshForMs: terms.freshForMs });
        const { waitMs } = waiting;
        return await flights.getOrCompute(key, { waitMs, forceRefresh: true, compute: () => "" });
      }),
    runs: (key) =>
      audited(context, "runs", key, async () => {
        return (await finishSlots(context, jobRunsOf(client), tries)).join(", ");
      }),
    tasks: (key) =>
      audited(context, "tasks", key, async () => {
        const open = await finishTasks(context, taskSetOf(client), tries);
        return open === 0 ? "" : String(open);
      }),
  };
  const chosen = context.config.primitives.flatMap((primitive) =>
    keys[primitive].map((key) => audits[primitive](key)),
  );
  await Promise.all(chosen);
}

/** Does something that has to work by now; `call` gives what is left undone. */
async function audited(
  { journal }: WorkContext,
  primitive: Primitive,
  key: string,
  call: () => Promise<string>,
): Promise<void> {
  const answer = journal.call(primitive, "audit", key);
  try {
    const left = await call();
    answer(left === "" ? "ok" : "refused", left === "" ? {} : { left });
  } catch (error) {
    if (!(error instanceof LeaseError)) throw error;
    answer("refused", { code: error.code });
  }
}
