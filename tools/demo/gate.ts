import { randomUUID } from "node:crypto";
import {
  anyRequest,
  type Proxy as EngineProxy,
  type Exchange,
  startProxy,
  type Target,
} from "../../test/support/proxy.ts";

/** What a request wants of DynamoDB. */
export interface GateRequest {
  /** Such as `TransactWriteItems`. */
  readonly operation: string;
  readonly body: unknown;
}

/** A request that stands at the gate: DynamoDB has not seen it yet. */
export interface HeldRequest<T> {
  /** What the hold saw in it. */
  readonly seen: T;
  /** The request, as it was sent. */
  readonly request: GateRequest;
  /**
   * Lets it through, however late, also when its sender is gone, and after it what its sender has sent again.
   * Resolves to whether DynamoDB has done the first one.
   */
  letThrough(): Promise<boolean>;
  /** Loses it, and what its sender sends again, with their connections. */
  lose(): void;
}

/** One request as it came in. */
interface Passage {
  pass(): Promise<boolean>;
  lose(): void;
}

/** What can be done with a request that was stopped. */
type Stopped = Pick<HeldRequest<unknown>, "letThrough" | "lose">;

/** Whether a request is the one to hold. Then it is stopped. */
type Hold = (request: GateRequest, stop: () => Stopped) => boolean;

/**
 * A gate between the functions and DynamoDB, where requests can be held up between their sending and their arrival.
 *
 * That is where a process dies or freezes worst: it has checked its lease, and its write is under way. A sender that
 * waits too long for its answer sends the request again: that is the same request, and held with it.
 */
export class Gate implements AsyncDisposable {
  readonly #proxy: EngineProxy;
  readonly #holds = new Set<Hold>();
  readonly #watchers = new Set<(request: GateRequest) => void>();
  /** Every request that came, by the id that the SDK gives it and its repetitions. */
  readonly #known = new Set<string>();
  readonly #passing = new Set<Promise<boolean>>();
  /** What becomes of a repetition of a request that was held: it is held too, or lost as that one was. */
  readonly #repetitions = new Map<string, (repetition: Passage) => void>();

  private constructor(proxy: EngineProxy) {
    this.#proxy = proxy;
    proxy.always(anyRequest, (exchange) => this.#arrive(exchange));
  }

  /** Opens a gate before an engine. */
  static async open(engine: Target): Promise<Gate> {
    return new Gate(await startProxy(engine));
  }

  /** Where the functions send their requests. */
  get url(): string {
    return (this.#proxy.clientConfig as { readonly endpoint: string }).endpoint;
  }

  /** Holds the next request in which `sees` finds something, and gives what it found. */
  hold<T>(sees: (request: GateRequest) => T | undefined): Promise<HeldRequest<T>> {
    const { promise, resolve } = Promise.withResolvers<HeldRequest<T>>();
    const hold: Hold = (request, stop) => {
      const seen = sees(request);
      if (seen === undefined) return false;
      this.#holds.delete(hold);
      resolve({ seen, request, ...stop() });
      return true;
    };
    this.#holds.add(hold);
    return promise;
  }

  /** Shows every request as it comes, the ones that are held too. One that is sent again is shown once. */
  watch(watcher: (request: GateRequest) => void): void {
    this.#watchers.add(watcher);
  }

  /** Resolves when DynamoDB has answered all that was let through until now. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#passing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy.close();
  }

  async #arrive(exchange: Exchange): Promise<void> {
    const passage: Passage = {
      pass: () => {
        const passing = pass(exchange);
        this.#passing.add(passing);
        return passing.finally(() => this.#passing.delete(passing));
      },
      lose: () => exchange.drop(),
    };
    const { operation, body, headers } = exchange.request;
    const id = headers["amz-sdk-invocation-id"] ?? randomUUID();
    const repeat = this.#repetitions.get(id);
    if (repeat !== undefined) {
      repeat(passage);
      return;
    }
    const request = { operation, body };
    if (!this.#known.has(id)) for (const watcher of this.#watchers) watcher(request);
    this.#known.add(id);
    for (const hold of this.#holds) if (hold(request, () => this.#stop(id, passage))) return;
    await passage.pass();
  }

  /** Keeps a request here, and what its sender sends again. */
  #stop(id: string, first: Passage): Stopped {
    const repetitions: Passage[] = [];
    this.#repetitions.set(id, (repetition) => repetitions.push(repetition));
    return {
      letThrough: async () => {
        const isDone = await first.pass();
        this.#repetitions.delete(id);
        // Their answers matter to their sender alone, which may be gone.
        await Promise.allSettled(repetitions.map(({ pass }) => pass()));
        return isDone;
      },
      lose: () => {
        this.#repetitions.set(id, ({ lose }) => lose());
        for (const { lose } of [first, ...repetitions]) lose();
      },
    };
  }
}

/** Resolves to whether DynamoDB has done it. Its sender may be dead: then nothing reads the answer. */
async function pass(exchange: Exchange): Promise<boolean> {
  const answer = await exchange.forward();
  exchange.reply(answer);
  return answer.status === 200;
}
