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
  /** Lets it through, however late, also when its sender is gone. Resolves to whether DynamoDB has done it. */
  letThrough(): Promise<boolean>;
  /** Loses it, and its connection with it. */
  lose(): void;
}

interface Hold {
  stops(request: GateRequest, pass: () => Promise<boolean>, lose: () => void): boolean;
}

/**
 * A gate between the functions and DynamoDB, where requests can be held up between their sending and their arrival.
 *
 * That is where a process dies or freezes worst: it has checked its lease, and its write is under way.
 */
export class Gate implements AsyncDisposable {
  readonly #server: Server;
  readonly #endpoint: URL;
  readonly #holds = new Set<Hold>();
  readonly #watchers = new Set<(request: GateRequest) => void>();

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
    const hold: Hold = {
      stops: (request, pass, lose) => {
        const seen = sees(request);
        if (seen === undefined) return false;
        this.#holds.delete(hold);
        resolve({ seen, request, letThrough: pass, lose });
        return true;
      },
    };
    this.#holds.add(hold);
    return promise;
  }

  /** Shows every request as it comes, the ones that are held too. */
  watch(watcher: (request: GateRequest) => void): void {
    this.#watchers.add(watcher);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #arrive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const pass = (): Promise<boolean> => this.#pass(incoming, body, response);
    const lose = (): void => {
      response.destroy();
    };
    const operation = String(incoming.headers["x-amz-target"]).split(".").at(-1) ?? "";
    const request = { operation, body: JSON.parse(body.toString()) as unknown };
    for (const watcher of this.#watchers) watcher(request);
    for (const hold of this.#holds) if (hold.stops(request, pass, lose)) return;
    await pass();
  }

  #pass(incoming: IncomingMessage, body: Buffer, response: ServerResponse): Promise<boolean> {
    const { hostname, port } = this.#endpoint;
    const { method, url: path, headers } = incoming;
    return new Promise((resolve, reject) => {
      const outgoing = send({ hostname, port, method, path, headers }, (answer) => {
        answer.once("end", () => resolve(answer.statusCode === 200));
        answer.once("error", reject);
        // Its sender may be gone: then nobody takes the answer.
        if (response.destroyed) answer.resume();
        else answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers));
      });
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }
}
