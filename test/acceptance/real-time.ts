import { setTimeout as delay } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { acceptanceKeyPrefix } from "../../functions/acceptance/schema.ts";
import { type Check, checked, seconds } from "./check.ts";
import type { Deployment } from "./deployment.ts";
import { keepToKeySpace } from "./key-space.ts";

const leaseDurationMs = 3_000;
const clockSkewMs = 1_000;
/** A Date header tells whole seconds, and a look may come just before the end. */
const graceMs = 3_000;

/** What takes the time that it takes: the service's clock, and leases that end. All at once, in some 10 seconds. */
export async function checkRealTime({ tableName }: Deployment, signal: AbortSignal): Promise<Check[]> {
  const dynamodb = new DynamoDBClient({});
  keepToKeySpace(dynamodb);
  const client = (owner: string, options: LeaseClientOptions = {}): LeaseClient =>
    new LeaseClient({ tableName, dynamodb, owner, leaseDurationMs, clockSkewMs, ...options });
  const keyOf = (name: string): string => `${acceptanceKeyPrefix}real-time/${Date.now()}/${name}`;
  const check = (name: string, promised: string, perform: () => Promise<Measured>): Promise<Check> =>
    checked(name, promised, perform, signal);
  try {
    return await Promise.all([
      check("the clocks agree", "no skew beyond 1 s is told", () => skew(client, keyOf("skew"))),
      check("a dead holder is taken over", takeoverPromise, () => takeover(client, keyOf("dead"), signal)),
      check("a heartbeat keeps a lease", "held for 3 leases, nobody gets in", () =>
        heartbeat(client, keyOf("heartbeat"), signal),
      ),
      check("a waiter gets a released lock", "granted, next fencing token", () =>
        waiting(client, keyOf("waiter"), signal),
      ),
      check("a holder that is asked to stop hears it", "lost: revoked", () =>
        revocation(client, keyOf("revoked")),
      ),
    ]);
  } finally {
    dynamodb.destroy();
  }
}

type Measured = { readonly measured: string; readonly holds: boolean };
type ClientOf = (owner: string, options?: LeaseClientOptions) => LeaseClient;

async function skew(client: ClientOf, key: string): Promise<Measured> {
  const told: string[] = [];
  const observer = client("observer", {
    onEvent: (event) => {
      if (event.type === "skew") told.push(`${seconds(event.offsetMinMs)} to ${seconds(event.offsetMaxMs)}`);
    },
  });
  for (let turn = 0; turn < 3; turn += 1) await (await observer.acquire(key)).release();
  const [first] = told;
  return {
    measured: first === undefined ? "none told" : `this machine's is off by ${first}`,
    holds: first === undefined,
  };
}

const takeoverPromise = `within ${seconds(leaseDurationMs + clockSkewMs + graceMs)} of its last sign of life`;

async function takeover(client: ClientOf, key: string, signal: AbortSignal): Promise<Measured> {
  const dead = await client("dead").acquire(key);
  const died = performance.now();
  const early = await client("early").tryAcquire(key);
  const next = await client("next").acquire(key, { waitMs: 20_000, signal });
  const tookMs = performance.now() - died;
  await next.release();
  const isNext = early === undefined && next.fencingToken === dead.fencingToken + 1;
  // Taken before its end, it would be a split brain; long after it, the service's clock would be of no use.
  const isInTime = tookMs >= leaseDurationMs && tookMs <= leaseDurationMs + clockSkewMs + graceMs;
  return { measured: `after ${seconds(tookMs)}`, holds: isNext && isInTime };
}

async function heartbeat(client: ClientOf, key: string, signal: AbortSignal): Promise<Measured> {
  const lease = await client("holder").acquire(key, { heartbeat: true });
  const end = performance.now() + 3 * leaseDurationMs;
  let [tries, entries] = [0, 0];
  while (performance.now() < end) {
    await delay(500, undefined, { signal });
    tries += 1;
    if ((await client("other").tryAcquire(key)) !== undefined) entries += 1;
  }
  const isHeld = lease.held;
  await lease.release();
  const measured = `${isHeld ? "held" : "lost"}, ${entries} of ${tries} others got in`;
  return { measured, holds: isHeld && entries === 0 };
}

async function waiting(client: ClientOf, key: string, signal: AbortSignal): Promise<Measured> {
  const first = await client("first", { leaseDurationMs: 30_000 }).acquire(key);
  const wait = client("second").acquire(key, { waitMs: 20_000, signal });
  await delay(1_000, undefined, { signal });
  const released = performance.now();
  await first.release();
  const second = await wait;
  const measured = `${seconds(performance.now() - released)} after the release`;
  const holds = second.fencingToken === first.fencingToken + 1;
  await second.release();
  return { measured, holds };
}

async function revocation(client: ClientOf, key: string): Promise<Measured> {
  const lease = await client("holder").acquire(key);
  await new LeaseAdmin(client("operator")).requestRevocation(key, {
    token: lease.token,
    reason: "acceptance",
  });
  const reason = await lease.renew().then(
    () => "renewed",
    (error: { readonly reason?: string }) => error.reason,
  );
  await lease.release();
  return { measured: `lost: ${reason}`, holds: reason === "revoked" };
}
