import { type Clock, sleep } from "./clock.ts";

/** A sleep that can be ended early. */
export class WakeableSleep {
  readonly #clock: Clock;
  #wake: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the sleep under way, if there is one. */
  wake(): void {
    this.#wake();
  }

  /** Sleeps; tells whether it was woken. Rejects with the signal's reason as soon as it aborts. */
  async sleep(delayMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.#wake = wake;
    signal?.addEventListener("abort", wake, { once: true });
    try {
      await sleep(this.#clock, delayMs, woken.signal);
      return false;
    } catch (error) {
      signal?.throwIfAborted();
      if (!woken.signal.aborted) throw error;
      return true;
    } finally {
      this.#wake = () => undefined;
      signal?.removeEventListener("abort", wake);
    }
  }
}
