import { randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as send,
} from "node:http";
import type { AddressInfo } from "node:net";

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
  readonly #server: Server;
  readonly #endpoint: URL;
  readonly #holds = new Set<Hold>();
  readonly #watchers = new Set<(request: GateRequest) => void>();
  /** Every request that came, by the id that the SDK gives it and its repetitions. */
  readonly #known = new Set<string>();
  readonly #passing = new Set<Promise<boolean>>();
  /** What becomes of a repetition of a request that was held: it is held too, or lost as that one was. */
  readonly #repetitions = new Map<string, (repetition: Passage) => void>();

  private constructor(endpoint: string) {
    this.#endpoint = new URL(endpoint);
    this.#server = createServer((request, response) => {
      this.#arrive(request, response).catch(() => response.destroy());
    });
  }

  /** Opens a gate before an endpoint. */
  static async open(endpoint: string): Promise<Gate> {
    const gate = new Gate(endpoint);
    await new Promise<void>((resolve) => gate.#server.listen(0, "127.0.0.1", resolve));
    return gate;
  }

  /** Where the functions send their requests. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #arrive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const passage: Passage = {
      pass: () => {
        const passing = this.#pass(incoming, body, response);
        this.#passing.add(passing);
        return passing.finally(() => this.#passing.delete(passing));
      },
      lose: () => response.destroy(),
    };
    const id = String(incoming.headers["amz-sdk-invocation-id"] ?? randomUUID());
    const repeat = this.#repetitions.get(id);
    if (repeat !== undefined) {
      repeat(passage);
      return;
    }
    const operation = String(incoming.headers["x-amz-target"]).split(".").at(-1) ?? "";
    const request = { operation, body: JSON.parse(body.toString()) as unknown };
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

  #pass(incoming: IncomingMessage, body: Buffer, response: ServerResponse): Promise<boolean> {
    const { hostname, port } = this.#endpoint;
    const { method, url: path, headers } = incoming;
    return new Promise((resolve, reject) => {
      const outgoing = send({ hostname, port, method, path, headers }, (answer) => {
        answer.once("end", () => resolve(answer.statusCode === 200));
        answer.once("error", reject);
        // Its sender may be dead: then nothing reads the answer.
        if (response.destroyed) answer.resume();
        else answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers));
      });
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }
}
