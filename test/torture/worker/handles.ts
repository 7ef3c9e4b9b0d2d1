/** The workload of leases that go on in another process: one acquires, another one adopts what it finds. */
import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, LeaseHandle } from "@leasehold/client";
import { microseconds } from "../history.ts";
import { keys, terms } from "../terms.ts";
import { outcomeOf, type WorkContext } from "./context.ts";
import { letGo, oftenLooking } from "./locks.ts";
import { readToWrite } from "./register.ts";

const primitive = "handedOver";
const suffix = ".handle";
let handedOver = 0;

/** Adopts a lease that was handed over, or else acquires one and hands it over. */
export async function handOverTurn(context: WorkContext): Promise<void> {
  // Before it has heard the service's time, an adopter's wall clock would have to be right.
  const knowsTime = context.config.wallMs === 0 || handedOver > 1;
  const handle = knowsTime ? await takeHandle(context) : undefined;
  if (handle === undefined) await giveHandle(context);
  else await goOn(context, handle);
}

/** Without a heartbeat: its giver does not touch it any more, and its client does not end it when it closes. */
async function giveHandle(context: WorkContext): Promise<void> {
  const { random, client, journal, config } = context;
  const { waitMs, leaseDurationMs: leaseMs } = terms;
  const key = random.pick(keys.handedOver);
  const since = microseconds();
  const answer = journal.call(primitive, "acquire", key, { waitMs });
  let lease: Lease;
  try {
    lease = await client.acquire(key, { heartbeat: false, waitMs, retry: oftenLooking });
  } catch (error) {
    const { outcome, code } = outcomeOf(error);
    return answer(outcome, { code });
  }
  const { fencingToken } = lease;
  answer("ok", { fencingToken });
  await context.hold(lease, { primitive, key, fencingToken, since, leaseMs }, undefined, false);
  handedOver += 1;
  const file = join(dirname(config.journal), `${config.name}-${handedOver}`);
  await writeFile(file, JSON.stringify(lease));
  // Whole, or not there.
  await rename(file, `${file}${suffix}`);
  while (lease.held) await sleep(50);
}

/** Each handle goes to one process. */
async function takeHandle({ config }: WorkContext): Promise<LeaseHandle | undefined> {
  const folder = dirname(config.journal);
  for (const name of await readdir(folder)) {
    if (!name.endsWith(suffix)) continue;
    const taken = join(folder, `${name}-for-${config.name}`);
    try {
      await rename(join(folder, name), taken);
    } catch {
      continue; // Ignored: another process was quicker.
    }
    const handle = JSON.parse(await readFile(taken, "utf8")) as LeaseHandle;
    await rm(taken);
    return handle;
  }
  return undefined;
}

async function goOn(context: WorkContext, handle: LeaseHandle): Promise<void> {
  const { client, journal } = context;
  const { key, fencingToken } = handle;
  const since = microseconds();
  const answer = journal.call(primitive, "adopt", key, { fencingToken });
  const lease = client.adopt(handle, { heartbeat: true });
  answer("ok");
  const work = (): ReturnType<typeof readToWrite> => readToWrite(context, lease);
  await context.hold(lease, { primitive, key, fencingToken, since, joins: "handle" }, work);
  await letGo(context, primitive, key, lease);
}
