/** Workloads of what one caller holds at a time: the lock, the fair lock, a group of locks, the leadership. */
import { setTimeout as sleep } from "node:timers/promises";
import { type AcquireOptions, type Lease, LeaseError } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { type Details, type HoldTerms, microseconds, type Primitive } from "../history.ts";
import { keys, terms } from "../terms.ts";
import { answering, type WorkContext } from "./context.ts";
import { readRegister, readToWrite } from "./register.ts";

/** A lease, or several as one. */
interface Releasable {
  readonly fencingToken: number;
  renew(): Promise<unknown>;
  release(): Promise<unknown>;
}

/** Looks often: a lock that is let go does not stay idle for long. */
export const oftenLooking = { strategy: "fullJitter", delayMs: 50, maxDelayMs: 400 } as const;

/** The lock: acquired with and without waiting, with and without a heartbeat, renewed, released, or left to expire. */
export async function lockTurn(context: WorkContext): Promise<void> {
  const { random, client } = context;
  const key = random.pick(keys.lock);
  if (random.chance(0.2)) return await readRegister(context, key);
  const waitMs = random.chance(0.5) ? terms.waitMs : 0;
  // Some leases end under their holder.
  const isTooShort = random.chance(0.2);
  const heartbeat = !isTooShort && random.chance(0.7);
  const leaseDurationMs = isTooShort ? terms.shortLeaseMs : terms.leaseDurationMs;
  const isClosedLonger = !isTooShort && random.chance(0.15);
  const lockAtLeastForMs = isClosedLonger ? terms.lockAtLeastForMs : 0;
  const options = { leaseDurationMs, heartbeat, lockAtLeastForMs };
  const held = {
    ...(isClosedLonger && { cooldownMs: lockAtLeastForMs }),
    ...(!heartbeat && { leaseMs: leaseDurationMs }),
  };
  const acquire = (): Promise<Lease> => client.acquire(key, { ...options, waitMs, retry: oftenLooking });
  await acquireAndHold(context, "lock", key, { waitMs }, acquire, isTooShort || undefined, held);
}

/** The fair lock. */
export async function fairTurn(context: WorkContext): Promise<void> {
  const { random, client, journal } = context;
  const key = random.pick(keys.fair);
  const waitMs = terms.fairWaitMs;
  await acquireAndHold(context, "fair", key, { waitMs }, async (id) => {
    const onPosition = (): void => journal.joined(id);
    const options: AcquireOptions = {
      order: fair({ maxWaiters: terms.maxWaiters, onPosition }),
      heartbeat: true,
    };
    return await client.acquire(key, { ...options, waitMs });
  });
}

/** A campaign, for as long as a caller of the lock would wait. */
export async function leaderTurn(context: WorkContext): Promise<void> {
  const { random, client } = context;
  const key = random.pick(keys.leader);
  await acquireAndHold(context, "leader", key, { waitMs: terms.waitMs }, async () => {
    const leader = new Leader(client, key, { retry: oftenLooking });
    return await leader.campaign({ signal: AbortSignal.timeout(terms.waitMs) });
  });
}

/** One lock whose handles a process shares: as many at once as it has callers. */
export async function sharedTurn(context: WorkContext): Promise<void> {
  const { random, client, config } = context;
  const key = random.pick(keys.shared);
  const { waitMs } = terms;
  const owner = `owner of ${config.name}`;
  const options = { owner, reentrant: true, heartbeat: true, waitMs, retry: oftenLooking };
  const callers = Array.from({ length: random.integer(1, 3) }, async () => {
    await sleep(random.between(0, 300));
    const acquire = (): Promise<Lease> => client.acquire(key, options);
    await acquireAndHold(context, "shared", key, { waitMs }, acquire, undefined, { isShared: true });
  });
  await Promise.all(callers);
}

/** Acquires something, holds it for a while and lets it go. A seat's call has the name of its kind. */
export async function acquireAndHold(
  context: WorkContext,
  primitive: Primitive,
  key: string,
  details: Details,
  acquire: (id: number) => Promise<Lease>,
  isLong?: boolean,
  held: Partial<HoldTerms> = {},
): Promise<void> {
  const since = microseconds();
  const answer = context.journal.call(primitive, held.kind ?? "acquire", key, details);
  const lease = await answering(answer, () => acquire(answer.id));
  if (lease === undefined) return;
  const { fencingToken } = lease;
  answer("ok", { fencingToken });
  const work = primitive === "lock" ? () => readToWrite(context, lease) : undefined;
  await context.hold(lease, { primitive, key, fencingToken, since, ...held }, work, isLong);
  await letGo(context, primitive, key, lease);
}

/** Releases it in the end, renews it before that now and then, or leaves it to expire. */
async function letGo(
  context: WorkContext,
  primitive: Primitive,
  key: string,
  lease: Releasable,
): Promise<void> {
  const { random } = context;
  const called = (action: string, call: () => Promise<unknown>): Promise<void> =>
    proven(context, primitive, action, key, lease, call);
  if (random.chance(0.1)) await called("renew", () => lease.renew());
  // A heartbeat would keep it: that ends with the release alone.
  if (random.chance(0.95)) await called("release", () => lease.release());
  else setTimeout(() => void lease.release().catch(ignored), 2 * terms.leaseDurationMs);
}

/** Makes a call that succeeds only while the lease is its caller's. */
async function proven(
  { journal }: WorkContext,
  primitive: Primitive,
  action: string,
  key: string,
  { fencingToken }: Releasable,
  call: () => Promise<unknown>,
): Promise<void> {
  const answer = journal.call(primitive, action, key, { fencingToken });
  await answering(answer, async () => {
    const result = await call();
    answer("ok", { result: String(result === true || result === undefined) });
  });
}

function ignored(error: unknown): void {
  if (!(error instanceof LeaseError)) throw error;
}

/** Two or three locks at once, or one of them alone: a group and a single caller exclude each other. */
export async function groupTurn(context: WorkContext): Promise<void> {
  const { random, client, journal } = context;
  const wishes = { waitMs: terms.waitMs, heartbeat: true, retry: oftenLooking } as const;
  if (random.chance(0.3)) {
    const key = random.pick(keys.group);
    const acquire = (): Promise<Lease> => client.acquire(key, wishes);
    return await acquireAndHold(context, "group", key, { waitMs: terms.waitMs }, acquire);
  }
  const first = random.integer(0, keys.group.length - 1);
  const chosen = keys.group.filter((_key, index) => index !== first || random.chance(0.5));
  const since = microseconds();
  const answer = journal.call("group", "acquireAll", chosen.join("+"), { waitMs: terms.waitMs });
  await answering(answer, async () => {
    const group = await acquireAll(client, chosen, wishes);
    answer("ok", { fencingToken: group.fencingToken });
    const holds = [...group.leases].map(([key, lease]) => {
      const { fencingToken } = lease;
      return context.hold(lease, { primitive: "group", key, fencingToken, since });
    });
    await Promise.all(holds);
    await letGo(context, "group", chosen.join("+"), group);
  });
}
