// A client on a table in memory, in a time that is moved by hand, and what must hold of every call of it: a right result, or a
// named error; before anything was sent where the input is bad; and nothing held that nobody holds.

import { InvalidOptionsError, LeaseClient, LeaseError } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { expect } from "vitest";
import { itemsOf } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

/** After as many steps of a second a call without a wait has ended. */
const steps = 60;

/** What became of a call. */
type Outcome = { readonly result: unknown } | { readonly error: unknown } | "waits";

/** One client on its own table. */
export class Bench {
  readonly store: ScriptedStore = new ScriptedStore();
  readonly clock: ManualClock = new ManualClock();
  readonly client: LeaseClient = new LeaseClient({ store: this.store, clock: this.clock, owner: "bench" });

  #before = 0;
  #isRefused = false;

  /** Whether no call of it was refused for its input. */
  get isAccepted(): boolean {
    return !this.#isRefused;
  }

  /** Begins the next call of several: nothing of it has been sent. */
  begin(): void {
    this.#before = this.store.calls.length;
  }

  /** Makes a call, and lets time pass until it has ended. One that waits for ever is ended by the client's close. */
  async outcomeOf(call: () => unknown): Promise<Outcome> {
    let outcome: Outcome | undefined;
    const ended = (async () => call())().then(
      (result) => {
        outcome = { result };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    for (let step = 0; step < steps && outcome === undefined; step += 1) {
      await settled();
      if (outcome === undefined) await this.clock.advance(1_000);
    }
    if (outcome !== undefined) return outcome;
    const closing = this.client.close({ timeoutMs: 1_000 }).catch(() => undefined);
    await this.clock.advance(2_000);
    await closing;
    await Promise.race([ended, settled().then(settled).then(settled)]);
    return outcome === undefined
      ? Promise.reject(new Error("a call does not end by the client's close"))
      : "waits";
  }

  /** Makes a call and holds it to what every call has to do. Gives what it has resolved to. */
  async check(call: () => unknown, isExpected: (error: unknown) => boolean = isNamed): Promise<unknown> {
    this.begin();
    const outcome = await this.outcomeOf(call);
    if (outcome === "waits") return undefined;
    if ("error" in outcome) {
      const { error } = outcome;
      this.#isRefused ||= error instanceof InvalidOptionsError;
      if (!isExpected(error)) throw new Error("not a named error", { cause: error });
      // What a function of the caller's gives is only known when it is called.
      const isOfAnswer = error instanceof InvalidOptionsError && /'s (answer|result)$/.test(error.option);
      if (error instanceof InvalidOptionsError && !isOfAnswer)
        expect(this.store.calls.slice(this.#before)).toEqual([]);
      await this.clock.advance(1_000);
      expect(this.client.held().map(({ key }) => key)).toEqual([]);
      await this.#expectNothingHeld();
      return undefined;
    }
    return outcome.result;
  }

  /** Releases what a call has given, and then nothing is held. */
  async release(given: unknown): Promise<void> {
    const { release } = Object(given) as { readonly release?: () => Promise<unknown> };
    if (typeof release === "function") await this.outcomeOf(() => release.call(given));
    await this.outcomeOf(() => this.client.close({ timeoutMs: 1_000 }));
    await this.#expectNothingHeld();
  }

  /** Looks into the table itself: an item with a token is a lease that is held, if its time is not over. */
  async #expectNothingHeld(): Promise<void> {
    const items = await itemsOf(this.store.table);
    const held = items.filter(
      ({ token, expiresAt }) =>
        typeof token === "string" && !token.startsWith("closed:") && Number(expiresAt) > this.clock.now(),
    );
    expect(held).toEqual([]);
  }
}

/** Whether an error is one of the package's, with a code that is documented. */
export function isNamed(error: unknown): boolean {
  return error instanceof LeaseError && /^[A-Z_]{5,}$/.test(error.code) && error.message.length > 10;
}
