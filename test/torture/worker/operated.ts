/** The workload of a lock that operators act on: they ask its holder to stop, break its lease, and pause it. */
import { LeaseOperator, type OperatorResult } from "@leasehold/client/admin";
import { type Details, microseconds } from "../history.ts";
import { keys, terms } from "../terms.ts";
import { answering, outcomeOf, type WorkContext } from "./context.ts";
import { acquireAndHold, oftenLooking } from "./locks.ts";

const primitive = "operated";
const reason = "as the torture wants it";
let turns = 0;

/** Mostly a caller of the lock, now and then its operator. */
export async function operatedTurn(context: WorkContext): Promise<void> {
  const { random, client, config } = context;
  const key = random.pick(keys.operated);
  turns += 1;
  // A pause ends by its operator's clock: that has to know the service's time.
  const knowsTime = config.wallMs === 0 || turns > 5;
  if (knowsTime && random.chance(0.08)) return await pause(context, key);
  if (random.chance(0.2)) return await act(context, key);
  const { waitMs } = terms;
  await acquireAndHold(context, primitive, key, { waitMs }, () =>
    client.acquire(key, { waitMs, heartbeat: true, retry: oftenLooking }),
  );
}

/** Stops or breaks the lease that is there. */
async function act(context: WorkContext, key: string): Promise<void> {
  const { random, client } = context;
  const held = await client.inspect(key).catch((error: unknown) => {
    outcomeOf(error);
    return undefined; // Ignored: a look that has failed changes nothing.
  });
  if (held === undefined || held.inCooldown || held.pause !== undefined) return;
  const { token, fencingToken } = held;
  const action = random.pick(["stop", "break"] as const);
  await called(context, action, key, { fencingToken }, (operator) =>
    operator[action](key, { token, reason }),
  );
}

/** While it is paused, its operator holds it: nobody else may. */
async function pause(context: WorkContext, key: string): Promise<void> {
  const { random } = context;
  const forMs = random.integer(4_000, 6_000);
  const since = microseconds();
  const endsAt = performance.now() + forMs - terms.earlyMs;
  const options = { forMs, waitMs: terms.waitMs, reason };
  const result = await called(context, "pause", key, {}, (operator) => operator.pause(key, options));
  if (result?.outcome !== "done") return;
  const { token, fencingToken } = result.lease;
  const paused = {
    get held(): boolean {
      return performance.now() < endsAt;
    },
  };
  await context.hold(paused, { primitive, key, fencingToken, since });
  await called(context, "resume", key, { fencingToken }, (operator) => operator.resume(key, { token }));
}

async function called(
  { journal, client, config }: WorkContext,
  action: string,
  key: string,
  details: Details,
  act: (operator: LeaseOperator) => Promise<OperatorResult>,
): Promise<OperatorResult | undefined> {
  const answer = journal.call(primitive, action, key, details);
  return await answering(answer, async () => {
    const result = await act(new LeaseOperator(client, { by: `operator of ${config.name}` }));
    answer(result.outcome === "done" ? "ok" : "refused", { found: result.outcome });
    return result;
  });
}
