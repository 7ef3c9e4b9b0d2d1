import { type LeaseLockOptions, leaseLock } from "@leasehold/middy";
import type { MiddlewareObj } from "@middy/core";
import { describe, expect, test } from "vitest";
import { bench, type LambdaContext, middies } from "./support.ts";

/** What other middlewares do. */
const others = {
  "an early answer": { before: () => "early" },
  "an early answer of undefined": {
    before: (request: { earlyResponse?: unknown }) => {
      request.earlyResponse = undefined;
    },
  },
  "a before that throws": {
    before: () => {
      throw new Error("before");
    },
  },
  "an after that answers": { after: () => "after" },
  "an after that throws": {
    after: () => {
      throw new Error("after");
    },
  },
  "an onError that swallows": { onError: () => "swallowed" },
  "an onError that answers undefined": {
    onError: (request: { earlyResponse?: unknown }) => {
      request.earlyResponse = undefined;
    },
  },
  "an onError that throws another error": {
    onError: () => {
      throw new Error("onError");
    },
  },
  "an onError that throws the same error": {
    onError: (request: { error: unknown }) => {
      throw request.error;
    },
  },
  "an onError that changes the error": {
    onError: (request: { error: unknown }) => {
      request.error = new Error("changed");
    },
  },
  "an early answer whose after and onError do nothing": {
    before: () => ({ statusCode: 304 }),
    after: () => undefined,
    onError: () => undefined,
  },
} satisfies Record<string, unknown>;

const plain = { before: () => undefined, after: () => undefined, onError: () => undefined };

const handlers = {
  succeeds: async () => "done",
  "succeeds with nothing": async () => undefined,
  "succeeds without a promise": () => "done",
  fails: async () => {
    throw new Error("handler");
  },
};

const places = { first: 0, middle: 1, last: 2 } as const;

describe.each(Object.entries(middies))("in %s", (_, middy) => {
  describe.each(Object.entries(others))("beside %s", (_, other) => {
    describe.each(Object.entries(handlers))("with a handler that %s", (_, handler) => {
      test.each(Object.entries(places))(
        "the lock as the %s middleware is free in the end",
        async (_, place) => {
          const { clock, client, store, context, holder } = bench();
          const answers: unknown[] = [];
          for (const withLock of [false, true]) {
            let heldInHandler: string | undefined = "not run";
            const app = middy(async (event: unknown, context: LambdaContext) => {
              heldInHandler = await holder();
              return await (handler as (...args: unknown[]) => unknown)(event, context);
            });
            const chain: unknown[] = [other, plain];
            if (withLock) chain.splice(place, 0, leaseLock({ client, clock, key: "job" }));
            for (const middleware of chain) app.use(middleware as MiddlewareObj);

            const answer = await Promise.resolve(app({}, context())).then(
              (value: unknown) => ({ value }),
              (error: Error) => ({ error: error.message }),
            );
            await clock.advance(0);

            answers.push([answer, heldInHandler !== "not run"]);
            expect(await holder()).toBeUndefined();
            if (withLock && heldInHandler !== "not run") expect(heldInHandler).toMatch("job/request-");
          }
          // Nor does the lock change what anybody answers.
          expect(answers[1]).toEqual(answers[0]);
          const updates = store.requests.filter((request) => request === "update").length;
          expect([0, 2]).toContain(updates);
          expect(clock.pending).toBe(0);
        },
      );
    });
  });

  describe("waits for its release", () => {
    test.each([
      ["an early answer", others["an early answer"], handlers.succeeds],
      ["an after that answers", others["an after that answers"], handlers.succeeds],
      ["an onError that swallows", others["an onError that swallows"], handlers.fails],
    ])("when it is cut off by %s", async (_, other, handler) => {
      const { clock, client, store, context, holder } = bench();
      let land: () => void = () => undefined;
      const landing = new Promise<void>((resolve) => {
        land = resolve;
      });
      store.delay = (update) => (update === 2 ? landing : Promise.resolve());
      let ended: unknown;
      const app = middy(handler, {
        requestEnd(request) {
          ended = request.response;
        },
      })
        .use(leaseLock({ client, clock, key: "job" }))
        .use(other as MiddlewareObj);

      const answer = app({}, context());
      let isAnswered = false;
      void answer.then(() => {
        isAnswered = true;
      });
      await clock.advance(10);
      expect(isAnswered).toBe(false);
      land();

      expect(typeof (await answer)).toBe("string");
      expect(typeof ended).toBe("string");
      expect(await holder()).toBeUndefined();
    });
  });

  describe("slots", () => {
    const run = async (
      options: LeaseLockOptions,
      chain: MiddlewareObj[],
      handler: () => Promise<unknown>,
    ) => {
      const { clock, client, context } = bench();
      const lock = leaseLock({ client, clock, key: "job", once: () => "slot", ...options });
      const app = middy(handler).use(lock);
      for (const middleware of chain) app.use(middleware);
      await Promise.resolve(app({}, context())).catch(() => undefined);
      const lease = await client.tryAcquire("job", { slot: "slot" });
      return lease === undefined ? "done" : "open";
    };

    test("an inner after that answers early leaves the slot done", async () => {
      expect(await run({}, [others["an after that answers"]], handlers.succeeds)).toBe("done");
    });
    test("an inner before that answers early leaves the slot open", async () => {
      expect(await run({}, [others["an early answer"]], handlers.succeeds)).toBe("open");
    });
    test("an inner onError that swallows leaves the slot open", async () => {
      expect(await run({}, [others["an onError that swallows"]], handlers.fails)).toBe("open");
    });
  });

  test("onError of a lock whose before never ran does not touch the lock", async () => {
    const { clock, client, other, store, context, holder } = bench();
    await other.acquire("job");
    store.requests.length = 0;
    const app = middy(handlers.succeeds)
      .use(others["a before that throws"])
      .use(leaseLock({ client, clock, key: "job" }));

    await expect(app({}, context())).rejects.toThrow("before");

    expect(store.requests).toEqual([]);
    expect(await holder()).toBe("somebody else");
  });

  test("two locks in one chain are both free in the end", async () => {
    const { clock, client, context, holder } = bench();
    const app = middy(handlers.succeeds)
      .use(leaseLock({ client, clock, key: "a" }))
      .use(leaseLock({ client, clock, key: "b" }))
      .use(others["an after that answers"]);

    expect(await app({}, context())).toBe("after");
    expect([await holder("a"), await holder("b")]).toEqual([undefined, undefined]);
  });

  test("an outer lock is let go when the inner one is held", async () => {
    const { clock, client, other, context, holder } = bench();
    await other.acquire("b");
    const app = middy(handlers.succeeds)
      .use(leaseLock({ client, clock, key: "a" }))
      .use(
        leaseLock({
          client,
          clock,
          key: "b",
          whenHeld: "skip",
          skipResult: (_event, _context, reason) => reason?.key,
        }),
      );

    expect(await app({}, context())).toBe("b");
    expect(await holder("a")).toBeUndefined();
  });

  test("a lease that was lost fails an invocation that an inner after answers early", async () => {
    const { clock, client, context } = bench();
    const app = middy(async () => {
      await clock.advance(200);
      return "done";
    })
      .use(leaseLock({ client, clock, key: "job", lockAtMostForMs: 100 }))
      .use(others["an after that answers"]);

    await expect(app({}, context())).rejects.toMatchObject({ name: "LeaseLostError", reason: "expired" });
  });
});
