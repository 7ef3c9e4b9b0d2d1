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

/** Whether a request is the one to hold; then `stop` is called, which says what can be done with it. */
type Hold = (request: GateRequest, stop: () => Stopped) => boolean;
type Stopped = Pick<HeldRequest<unknown>, "letThrough" | "lose">;

/**
 * A gate between the functions and DynamoDB, where requests can be held up between their sending and their arrival.
 *
 * That is where a process dies or freezes worst: it has checked its lease, and its write is under way. A sender that
 * waits too long for its answer sends the request again: that is the same request, and shares its fate.
 */
export class Gate implements AsyncDisposable {
  readonly #proxy: EngineProxy;
  readonly #holds = new Set<Hold>();
  readonly #watchers = new Set<(request: GateRequest) => void>();
  /** Whether what a sender sends again may pass, by the id that the SDK gives a request and its repetitions. */
  readonly #mayPass = new Map<string, boolean | Promise<boolean>>();

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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy.close();
  }

  async #arrive(exchange: Exchange): Promise<void> {
    const { operation, body, headers } = exchange.request;
    const id = headers["amz-sdk-invocation-id"] ?? randomUUID();
    const mayPass = this.#mayPass.get(id);
    if (mayPass !== undefined) {
      if (await mayPass) await pass(exchange);
      else exchange.drop();
      return;
    }
    this.#mayPass.set(id, true);
    const request = { operation, body };
    for (const watcher of this.#watchers) watcher(request);
    for (const hold of this.#holds) if (hold(request, () => this.#stop(id, exchange))) return;
    await pass(exchange);
  }

  #stop(id: string, exchange: Exchange): Stopped {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#mayPass.set(id, promise);
    return {
      letThrough: async () => {
        const isDone = await pass(exchange);
        resolve(true);
        return isDone;
      },
      lose: () => {
        exchange.drop();
        resolve(false);
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
