import { type Clock, pause } from "./clock.ts";
import { onAbort } from "./on-abort.ts";

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

  /** Sleeps; returns whether it was woken. Rejects with the signal's reason as soon as it aborts. */
  async sleep(delayMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const ignore = onAbort(signal, this.#wake);
    await pause(this.#clock, delayMs, woken.signal);
    ignore();
    signal?.throwIfAborted();
    return woken.signal.aborted;
  }
}
