/** What has to be ended, in the order of its beginning. */
export class Cleanups {
  readonly #actions: (() => unknown)[] = [];

  add(action: () => unknown): void {
    this.#actions.push(action);
  }

  /** Ends everything, the last begun first. One that fails keeps none of the others from it; its error comes at the end. */
  async run(): Promise<void> {
    const errors: unknown[] = [];
    for (let action = this.#actions.pop(); action !== undefined; action = this.#actions.pop()) {
      try {
        await action();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
