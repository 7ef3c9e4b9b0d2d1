/** One caller's arrival. */
export interface Arrival {
  /** The end of the arrivals before it. */
  readonly before: Promise<void>;
  /** Ends it. */
  readonly arrived: () => void;
}

/** Callers of one process that come one after the other, in the order of their calls. */
export class Arrivals {
  #last: Promise<void> = Promise.resolve();

  arrive(): Arrival {
    const before = this.#last;
    let arrived = (): void => undefined;
    const own = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    this.#last = before.then(() => own);
    return { before, arrived };
  }
}
