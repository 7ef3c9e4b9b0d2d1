import { LeaseClient, LeaseLostError, LeaseUnavailableError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import type { LeaseLockOptions, Lock } from "@leasehold/middy";
import { describe, expect, test } from "vitest";
import { follow } from "../support/follow.ts";
import { type App, bench, ways } from "./support.ts";

const event = { scheduledTime: "2026-11-21T10:00:00Z" };
const id = "one-and-the-same";

describe.each(Object.entries(ways))("%s", (_, wrap) => {
  /** Two environments of one function, which Lambda may give one event, with one request id. */
  function environments(options: LeaseLockOptions, workMs = 5_000) {
    const b = bench();
    const locks: Lock[] = [];
    let running = 0;
    let mostAtOnce = 0;
    const environment = (): App =>
      wrap(
        {
          client: new LeaseClient({ store: b.store, clock: b.clock }),
          clock: b.clock,
          key: "job",
          ...options,
        },
        async (lock) => {
          locks.push(lock);
          running += 1;
          mostAtOnce = Math.max(mostAtOnce, running);
          await new Promise<void>((resolve) => b.clock.schedule(resolve, workMs));
          running -= 1;
          return "done";
        },
      );
    return { ...b, first: environment(), second: environment(), locks, mostAtOnce: () => mostAtOnce };
  }

  /** Delivers the event to both environments, a moment apart; gives both answers. */
  async function deliverTwice({ first, second, context, clock }: ReturnType<typeof environments>) {
    const answers = [first(event, context(60_000, id)).catch((error: unknown) => error)];
    await clock.advance(100);
    answers.push(second(event, context(60_000, id)).catch((error: unknown) => error));
    await clock.advance(120_000);
    return await Promise.all(answers);
  }

  // A delivery beside a running one is no success: that one may fail yet.
  const refused = { name: "LeaseUnavailableError", holder: `job/${id}` };
  test.each<[string, LeaseLockOptions, second: unknown]>([
    ["no options", {}, refused],
    ["skip, as asked for", { whenHeld: "skip" }, refused],
    ["once", { once: true }, refused],
    ["once and a heartbeat", { once: true, heartbeat: true, lockAtMostForMs: 3_000 }, refused],
    ["throw", { whenHeld: "throw" }, refused],
    ["throw and once", { whenHeld: "throw", once: true }, refused],
    ["wait", { whenHeld: "wait" }, "done"],
    ["wait in order", { whenHeld: "wait", order: fair() }, "done"],
    ["replace", { whenHeld: "replace" }, "done"],
  ])(
    "an event that two environments get at once runs one handler at a time: %s",
    async (_, options, second) => {
      const both = environments(options, 15_000);
      expect(await deliverTwice(both)).toMatchObject(["done", second]);
      expect(both.mostAtOnce()).toBe(1);
      expect(both.locks[0]?.lease.loss).toBeUndefined();
      expect(both.locks.filter(({ signal }) => signal.aborted)).toEqual([]);
    },
  );

  test("a delivery beside a running one in its own process rejects at once without resume", async () => {
    const { first, context, clock } = environments({});
    const running = first(event, context(60_000, id));
    await clock.advance(100);
    const refusal = follow(first(event, context(60_000, id)), clock);
    await clock.advance(0);
    expect(refusal.error).toMatchObject({ name: "LeaseUnavailableError", holder: `job/${id}` });
    await clock.advance(10_000);
    expect(await running).toBe("done");
  });

  describe("resume", () => {
    test("takes over at once what an earlier attempt at the event holds, which hears of it when it renews", async () => {
      const { first, second, context, clock, locks } = environments({ resume: true, heartbeat: 1_000 });
      const earlier = first(event, context(60_000, id)).catch((error: unknown) => error);
      await clock.advance(100);
      const retry = second(event, context(60_000, id));
      await clock.advance(0);
      expect(locks).toHaveLength(2);
      expect(locks[1]?.lease.fencingToken).toBeGreaterThan(locks[0]?.lease.fencingToken ?? 0);
      await clock.advance(1_000);
      expect(locks[0]?.signal.reason).toBeInstanceOf(LeaseLostError);
      await clock.advance(10_000);
      expect(await earlier).toMatchObject({ name: "LeaseLostError" });
      expect(await retry).toBe("done");
    });

    test.each([0, 100])(
      "in one process runs deliveries that come %d ms apart one by one",
      async (apartMs) => {
        const { first, context, clock, locks, mostAtOnce } = environments({ resume: true, whenHeld: "wait" });
        const answers: Promise<unknown>[] = [];
        for (let count = 1; count <= 3; count += 1) {
          answers.push(first(event, context(60_000, id)));
          if (apartMs > 0) await clock.advance(apartMs);
        }
        await clock.advance(30_000);
        expect(await Promise.all(answers)).toEqual(["done", "done", "done"]);
        expect(mostAtOnce()).toBe(1);
        expect(new Set(locks.map(({ lease }) => lease.token)).size).toBe(3);
      },
    );

    test("in one process waits for the latest earlier attempt, when one before it has ended late", async () => {
      const { first, context, clock, locks, mostAtOnce } = environments(
        { resume: true, whenHeld: "wait", heartbeat: false, lockAtMostForMs: 10_000 },
        15_000,
      );
      const late = first(event, context(60_000, id)).catch((error: unknown) => error);
      await clock.advance(12_000);
      const second = first(event, context(60_000, id)).catch((error: unknown) => error);
      await clock.advance(4_000);
      expect(await late).toMatchObject({ name: "LeaseLostError" });
      const third = first(event, context(60_000, id)).catch((error: unknown) => error);
      await clock.advance(1_000);
      expect(locks).toHaveLength(2);
      expect(locks[1]?.lease.held).toBe(true);
      expect(mostAtOnce()).toBe(2);
      await clock.advance(60_000);
      expect(await second).toMatchObject({ name: "LeaseLostError" });
      expect(await third).toMatchObject({ name: "LeaseLostError" });
    });

    test("takes over nothing of another event's, and does not wait for it", async () => {
      const { first, second, context, clock, locks } = environments({ resume: true, skipResult: "skipped" });
      const earlier = first(event, context(60_000, id));
      await clock.advance(100);
      const answers: unknown[] = [];
      for (const environment of [first, second]) {
        void environment(event, context(60_000, "another")).then((answer) => answers.push(answer));
      }
      await clock.advance(0);
      expect(answers).toEqual(["skipped", "skipped"]);
      await clock.advance(10_000);
      expect(await earlier).toBe("done");
      expect(locks).toHaveLength(1);
    });

    test("in one process does not wait for another key's attempt, though its invocation has the same id", async () => {
      const key = (given: unknown): string => String(given);
      const { first, context, clock, locks } = environments({ resume: true, key });
      const answers = ["a", "b"].map((each) => first(each, context(60_000, id)));
      await clock.advance(0);
      expect(locks.map(({ lease }) => lease.key)).toEqual(["a", "b"]);
      await clock.advance(10_000);
      expect(await Promise.all(answers)).toEqual(["done", "done"]);
    });

    test("in one process rejects in time, with the end of an earlier attempt's lease, or without one", async () => {
      const { first, context, clock, other, locks } = environments(
        { resume: true, whenHeld: "wait", heartbeat: false, lockAtMostForMs: 60_000 },
        30_000,
      );
      const held = await other.acquire("job", { leaseDurationMs: 600_000 });
      const earlier = first(event, context(120_000, id));
      const inTime = async (): Promise<unknown> => {
        const retry = first(event, context(1_000, id)).catch((error: unknown) => error);
        await clock.advance(1_000);
        return await Promise.race([retry, "it waits"]);
      };
      expect(await inTime()).toMatchObject({ name: "LeaseUnavailableError", holder: `job/${id}` });
      await held.release();
      await clock.advance(20_000);
      const { expiresAt } = locks[0]?.lease ?? {};
      expect(await inTime()).toMatchObject({ holder: `job/${id}`, expiresAt });
      await clock.advance(60_000);
      expect(await earlier).toBe("done");
    });
  });
});

describe.each(Object.entries(ways))("%s: the advice of a refusal", (_, wrap) => {
  async function refusal(options: LeaseLockOptions, holder = "somebody else"): Promise<string> {
    const b = bench();
    await b.client.acquire("job", { owner: holder, leaseDurationMs: 60_000 });
    const app = wrap({ ...b.options, ...options }, () => "ran");
    const answer = app({}, b.context(1_000, "a")).catch((error: unknown) => error);
    await b.clock.advance(2_000);
    const error = await answer;
    expect(error).toBeInstanceOf(LeaseUnavailableError);
    return (error as Error).message;
  }

  test.each<[string, LeaseLockOptions, string, RegExp]>([
    ["a retry", {}, "job/a", /; or take over from the earlier attempt at this event.* with resume: true$/],
    ["a retry beside once", { once: () => "1" }, "job/a", /; or wait for it with whenHeld: "wait"$/],
    ["another event", {}, "somebody else", /; or wait for it with whenHeld: "wait"$/],
    [
      "an event that has waited",
      { whenHeld: "wait" },
      "somebody else",
      /; waited \d+ ms; try again in \d+ ms; or leave the wait more time with a smaller reserveMs/,
    ],
    ["one that would replace it", { whenHeld: "replace" }, "somebody else", /; or leave the wait more time/],
  ])("names options that the middleware takes, to %s", async (_who, options, holder, advice) => {
    const message = await refusal(options, holder);
    expect(message).toMatch(advice);
    expect(message).not.toMatch(/waitMs|reentrant/);
  });

  test("leaves an operator's pause in the refusal", async () => {
    const { client, clock, context, other } = bench();
    await new LeaseOperator(other, { by: "alice" }).pause("job", { forMs: 60_000, reason: "INC-1" });
    const app = wrap({ client, clock, key: "job", whenHeld: "throw" }, () => "ran");
    await expect(app({}, context())).rejects.toMatchObject({ pause: { by: "alice", reason: "INC-1" } });
  });

  test("is told without a holder if the lock was let go at the moment of giving up", async () => {
    const { client, clock, context } = bench();
    client.acquire = () => Promise.reject(new LeaseUnavailableError("job", undefined, 0));
    const app = wrap({ client, clock, key: "job", whenHeld: "throw" }, () => "ran");
    await expect(app({}, context())).rejects.toThrow(/^the lock "job" is not held; .*; or wait for it/);
  });
});
