import { type InstanceListener, InstanceProcess } from "./instance-process.ts";
import type { Setup } from "./messages.ts";
import { replacements } from "./plan.ts";

/** The instances of the job, all of which end with this process. */
export class Fleet implements AsyncDisposable {
  readonly #setup: Omit<Setup, "name">;
  readonly #listener: InstanceListener;
  readonly #instances: InstanceProcess[] = [];
  #replaced = 0;

  constructor(setup: Omit<Setup, "name">, listener: InstanceListener) {
    this.#setup = setup;
    this.#listener = listener;
    process.on("exit", () => {
      for (const instance of this.#instances) instance.killNow();
    });
  }

  /** Those that live and have nothing to do: an instance does one thing at a time. */
  get idle(): readonly InstanceProcess[] {
    return this.#instances.filter((instance) => instance.isIdle);
  }

  /** Starts instances and resolves when they are ready for triggers. */
  async start(names: readonly string[]): Promise<InstanceProcess[]> {
    const started = names.map((name) => new InstanceProcess(name, this.#listener));
    this.#instances.push(...started);
    await Promise.all(started.map((instance) => instance.prepare(this.#setup)));
    return started;
  }

  /** Starts one for an instance that is gone. */
  async replace(): Promise<InstanceProcess> {
    const name = replacements[this.#replaced];
    if (name === undefined) throw new Error("no more instances are planned for");
    this.#replaced += 1;
    const [instance] = await this.start([name]);
    return instance as InstanceProcess;
  }

  /** Ends all of them, the frozen ones too. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.kill()));
  }
}
