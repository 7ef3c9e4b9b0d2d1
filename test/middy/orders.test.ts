import { leaseLock } from "@leasehold/middy";
import type { MiddlewareObj } from "@middy/core";
import middy5 from "middy5";
import { describe, expect, test } from "vitest";
import { adminOf } from "../support/admin.ts";
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

  const wrap = (request: { error: unknown }): void => {
    request.error = Object.assign(new Error("changed"), { originalError: request.error });
  };

  describe("waits for its release", () => {
    test.each<[string, object, () => Promise<unknown>, unknown]>([
      ["an early answer", others["an early answer"], handlers.succeeds, "early"],
      ["an early answer of undefined", others["an early answer of undefined"], handlers.succeeds, undefined],
      ["an after that answers", others["an after that answers"], handlers.succeeds, "after"],
      ["an onError that swallows", others["an onError that swallows"], handlers.fails, "swallowed"],
      [
        "an onError that changes the error",
        others["an onError that changes the error"],
        handlers.fails,
        "changed",
      ],
      ["an onError that wraps the error", { onError: wrap }, handlers.fails, "changed"],
    ])("beside %s", async (_, other, handler, expected) => {
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

      let isAnswered = false;
      const answer = Promise.resolve(app({}, context()))
        .catch((error: Error) => error.message)
        .finally(() => {
          isAnswered = true;
        });
      await clock.advance(10);
      expect(isAnswered).toBe(false);
      land();

      expect(await answer).toBe(expected);
      expect(ended).toBe(handler === handlers.succeeds || expected === "swallowed" ? expected : undefined);
      expect(await holder()).toBeUndefined();
    });
  });

  const swallows = others["an onError that swallows"];
  const answers = {
    onError: (request: { response?: unknown }) => {
      request.response = "an answer";
    },
  };
  test.each<[string, slot: string, object[], () => Promise<unknown>]>([
    ["after that answers early", "done", [others["an after that answers"]], handlers.succeeds],
    ["before that answers early", "open", [others["an early answer"]], handlers.succeeds],
    ["onError that swallows", "open", [swallows], handlers.fails],
    ["onError that swallows what another has answered", "open", [swallows, answers], handlers.fails],
  ])("an inner %s leaves the slot %s", async (_, slot, chain, handler) => {
    const { client, options, context } = bench();
    const app = middy(handler).use(leaseLock({ ...options, once: () => "slot" }));
    for (const middleware of chain) app.use(middleware as MiddlewareObj);
    await Promise.resolve(app({}, context())).catch(() => undefined);
    const lease = await client.tryAcquire("job", { slot: "slot" });
    expect(lease === undefined ? "done" : "open").toBe(slot);
  });

  test("an invocation whose handler does not run, for an early answer, counts neither as failed nor as done", async () => {
    const { clock, client, context } = bench();
    const lines: string[] = [];
    const app = middy(handlers.succeeds)
      .use(leaseLock({ client, clock, key: "job", job: "j", metrics: (line) => lines.push(line) }))
      .use(others["an early answer"]);

    expect(await app({}, context())).toBe("early");
    expect(lines).toEqual([]);
  });

  test("inner onErrors run under the lock, and their time is not the handler's", async () => {
    const { clock, client, context, holder } = bench();
    const held: unknown[] = [];
    const app = middy(handlers.fails)
      .use(leaseLock({ client, clock, key: "job" }))
      .use({
        async onError(request) {
          held.push(await holder());
          // So little time is left that a handler which ended now might still run.
          clock.freeze(59_998);
          request.response = "an answer";
        },
      })
      .use(others["an onError that changes the error"]);

    expect(await app({}, context(60_000))).toBe("an answer");
    expect([...held, await holder()]).toEqual(["job/request-1", undefined]);
  });

  test("an outer after's error stands behind a handler that was replaced and has stopped", async () => {
    const { clock, client, other, context } = bench();
    const app = middy(async (_event: unknown, { lock }: LambdaContext) => {
      await adminOf(other).requestRevocation("job", { token: lock.lease.token });
      await clock.advance(20_000);
    })
      .use(others["an after that throws"])
      .use(leaseLock({ client, clock, key: "job", whenHeld: "replace", skipResult: "replaced" }));

    await expect(app({}, context())).rejects.toThrow("after");
  });

  test.each([
    ["changes", others["an onError that changes the error"].onError],
    ["wraps", wrap],
  ])("a handler that was replaced is skipped though an inner onError %s its error", async (_, onError) => {
    const { clock, client, other, context } = bench();
    const app = middy(async (_event: unknown, { lock }: LambdaContext) => {
      await adminOf(other).requestRevocation("job", { token: lock.lease.token });
      await clock.advance(20_000);
      lock.signal.throwIfAborted();
    })
      .use(leaseLock({ client, clock, key: "job", whenHeld: "replace", skipResult: "replaced" }))
      .use({ onError });

    expect(await app({}, context())).toBe("replaced");
  });

  test("a context that takes no lock is refused before anything is sent", async () => {
    const { clock, client, store, context } = bench();
    const app = middy(handlers.succeeds).use(leaseLock({ client, clock, key: "job" }));

    await expect(app({}, Object.freeze(context()))).rejects.toMatchObject({ option: "context" });
    expect(store.requests).toEqual([]);
  });

  test("a lock that a chain has twice is one lock", async () => {
    const { clock, client, store, context } = bench();
    const lock = leaseLock({ client, clock, key: "job" });

    expect(await middy(handlers.succeeds).use(lock).use(lock)({}, context())).toBe("done");
    expect(store.requests).toEqual(["update", "update"]);
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

  test.each<[string, object, object]>([
    ["is answered", { onError: () => "told" }, { value: "told" }],
    ["is replaced by another error", others["an onError that throws another error"], { error: "onError" }],
    [
      "is thrown again",
      others["an onError that throws the same error"],
      { error: expect.stringMatching("lost") },
    ],
  ])("the loss of a lease that %s by an outer onError is not told again", async (_, other, expected) => {
    const { clock, client, context } = bench();
    const app = middy(async () => await clock.advance(200))
      .use(other as MiddlewareObj)
      .use(leaseLock({ client, clock, key: "job", lockAtMostForMs: 100 }));

    const answer = await Promise.resolve(app({}, context())).then(
      (value: unknown) => ({ value }),
      (error: Error) => ({ error: error.message }),
    );
    expect(answer).toEqual(expected);
    // An unhandled rejection would end a Lambda process; here it fails the test run.
    await new Promise(setImmediate);
  });

  test("an internal state that requests share gives each of them its own lock", async () => {
    const { options, context, holder } = bench();
    const holders: (string | undefined)[] = [];
    const app = middy(async () => void holders.push(await holder()), { internal: { shared: true } });
    app.use(leaseLock(options));

    for (const id of ["a", "b"]) await app({}, context(1_000, id));
    expect(holders).toEqual(["job/a", "job/b"]);
  });
});

test.each([[undefined], ["skipped"], [null]])(
  "middy 5, which knows no early answer, is refused where it would run the handler though the lock is held: skipResult %j",
  async (skipResult) => {
    const { options, context, other } = bench();
    await other.acquire("job");
    const runs: string[] = [];
    const app = (middy5 as unknown as (typeof middies)["middy 7"])(async () => runs.push("ran"));
    app.use(leaseLock({ ...options, whenHeld: "skip", skipResult }));

    const option = "the version of @middy/core";
    await expect(app({}, context())).rejects.toMatchObject({ name: "InvalidOptionsError", option });
    expect(runs).toEqual([]);
  },
);
