// @module-tag long
import { leaseSortKey } from "@leasehold/client/schema";
import { JobRuns } from "@leasehold/jobs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { closeUnpaidOrdersKey as key } from "../../../functions/close-unpaid-orders/job.ts";
import { runSortKeyPrefix } from "../../../packages/jobs/src/runs/schema.ts";
import { startTestApp, type TestApp, until } from "../../support/app.ts";
import { kindOf } from "../../support/lease-writes.ts";
import type { Answer, Behaviour, Matcher } from "../../support/proxy.ts";
import { nextTrigger, Shop } from "../../support/shop.ts";

let it: TestApp;

beforeAll(async () => {
  // Lambda waits a minute: longer than the dead run's lease, which nobody takes over before its end.
  it = await startTestApp({ asyncRetryDelayMs: 5_000 });
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});
beforeEach(() => it.proxy.reset());

/** A request whose client will never hear of it: it is kept back, or it lands at once. */
interface UnheardRequest extends Behaviour {
  /** Resolves when it stands at the engine's door, or has landed. */
  readonly isThere: Promise<void>;
  /** Lets it land, if it has not. */
  land(): Promise<void>;
}

function unheard(lands: "before" | "after"): UnheardRequest {
  const there = Promise.withResolvers<void>();
  const mayLand = Promise.withResolvers<void>();
  const landed = Promise.withResolvers<Answer>();
  if (lands === "before") mayLand.resolve();
  const behaviour: Behaviour = async (exchange) => {
    if (lands === "after") there.resolve();
    await mayLand.promise;
    landed.resolve(await exchange.forward());
    there.resolve();
  };
  return Object.assign(behaviour, {
    isThere: there.promise,
    land: async () => {
      mayLand.resolve();
      await landed.promise;
    },
  });
}

/** Matches the lease writes of a kind: the lock's, or a run's. */
function write(place: "lock" | "run", kind: ReturnType<typeof kindOf>): Matcher {
  return ({ operation, body }) => {
    if (operation !== "UpdateItem" || kindOf({ values: body.ExpressionAttributeValues }) !== kind)
      return false;
    const sortKey: string = body.Key.sk.S;
    return place === "lock" ? sortKey === leaseSortKey : sortKey.startsWith(runSortKeyPrefix);
  };
}

/** The job's own: the function that wakes waiters searches too, at every release. */
const query: Matcher = ({ operation, body }) =>
  operation === "Query" && body.ExpressionAttributeValues[":dueBefore"] !== undefined;

/** Each request of a run, in their order; and what the run history has in the end of a run that died there. */
interface Death {
  readonly at: string;
  readonly step: (shop: Shop) => Matcher;
  /** Attempts in the end, when the request lands after the retry's work, and when it landed before the death. */
  readonly attempts: { readonly after: number; readonly before: number };
}

const deaths: readonly Death[] = [
  { at: "the lock's acquisition", step: () => write("lock", "acquire"), attempts: { after: 1, before: 1 } },
  { at: "the run's begin", step: () => write("run", "acquire"), attempts: { after: 1, before: 2 } },
  { at: "the search for orders", step: () => query, attempts: { after: 2, before: 2 } },
  { at: "the first order", step: (shop) => shop.closes(0), attempts: { after: 2, before: 2 } },
  { at: "the last order", step: (shop) => shop.closes(1), attempts: { after: 2, before: 2 } },
  { at: "the run's end", step: () => write("run", "end"), attempts: { after: 2, before: 1 } },
  { at: "the slot's completion", step: () => write("lock", "end"), attempts: { after: 1, before: 1 } },
];

const cases = deaths.flatMap((death) =>
  (["after", "before"] as const).map((lands) => ({ ...death, lands, attempt: death.attempts[lands] })),
);

test.each(cases)(
  "an instance that is killed at $at, whose request lands $lands the death: every order is closed once, and the run history has attempt $attempt",
  async ({ step, lands, attempt }) => {
    const shop = await Shop.open(it, 2);
    const trigger = nextTrigger();
    const request = unheard(lands);
    it.proxy.next(step(shop), request);
    const requestId = shop.runLater(trigger);
    await request.isThere;
    await it.app.kill((await it.environmentOf(requestId)).id);
    // The lock's item tells of the end even where the retry found everything done.
    await until("the slot", async () => (await it.leaseItem(key))?.doneSlot === trigger.scheduledTime);
    await until("the end", () => it.app.environments().every(({ state }) => state !== "busy"));
    await request.land();

    expect(await shop.state()).toEqual({ closings: [1, 1], restocked: 2 });
    expect(await new JobRuns(it.leases, key).get(trigger.scheduledTime)).toMatchObject({
      state: "succeeded",
      attempt,
      lostAttempts: attempt - 1,
    });
    expect(await it.leases.inspect(key)).toBeUndefined();
    expect(await it.leaseItem(key)).toMatchObject({ doneSlot: trigger.scheduledTime });
    expect(it.app.messages("UnpaidOrders/Job/DeadLetters")).toEqual([]);

    expect((await shop.run(trigger).result).payload).toMatchObject({ result: "doneBefore" });
  },
);
