import { LocalDurableTestRunner } from "@aws/durable-execution-sdk-js-testing";
import { expect } from "vitest";
import { patienceMs } from "./patience.ts";

type Handler = ConstructorParameters<typeof LocalDurableTestRunner>[0]["handlerFunction"];

/** A runner of AWS's for one handler, which tells when the function is suspended. */
export class SuspendableRunner extends LocalDurableTestRunner {
  readonly #activity: { invocations: number };

  constructor(handler: Handler) {
    const activity = { invocations: 0 };
    const observed = (async (...args: Parameters<Handler>) => {
      activity.invocations += 1;
      try {
        return await handler(...args);
      } finally {
        activity.invocations -= 1;
      }
    }) as Handler;
    super({ handlerFunction: observed });
    this.#activity = activity;
  }

  /**
   * Resolves once no invocation runs: the runner forgets a callback that is completed while the invocation that waits for
   * it is about to be suspended, and then waits for ever.
   */
  async suspended(): Promise<void> {
    await expect.poll(() => this.#activity.invocations, { timeout: patienceMs, interval: 50 }).toBe(0);
    // The runner still has to take the answer of that invocation.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(this.#activity.invocations).toBe(0);
  }
}
