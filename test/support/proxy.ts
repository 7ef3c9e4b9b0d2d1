import { EventEmitter, once } from "node:events";
import {
  Agent,
  createServer,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from "node:http";
import type { AddressInfo } from "node:net";

/** A request as it came over the wire. */
export interface ProxiedRequest {
  /** Such as `UpdateItem`. */
  readonly operation: string;
  // biome-ignore lint/suspicious/noExplicitAny: any operation's input, in DynamoDB's JSON.
  readonly body: Record<string, any>;
  readonly headers: Record<string, string>;
  /** When it had arrived, by `performance.now()`. */
  readonly at: number;
  /** When it was answered, or its client was gone, by `performance.now()`. */
  finishedAt: number | undefined;
}

/** What the engine, or the proxy in its place, says to a request. */
export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** What a behaviour can do with a request. Replying to a client that has gone away does nothing. */
export interface Exchange {
  readonly request: ProxiedRequest;
  /** Sends the request to the engine, with another body if one is given, and waits for the answer. */
  forward(body?: object): Promise<Answer>;
  reply(answer: Answer): void;
  /** Breaks the client's connection. */
  drop(): void;
}

/** What a DynamoDBClient can be pointed at: an engine, or a proxy in front of one. */
export interface Target {
  /** Settings to spread into the DynamoDBClient's. */
  readonly clientConfig: object;
}

/** What the proxy does with a request. */
export type Behaviour = (exchange: Exchange) => Promise<void> | void;
/** Which requests a rule is for. */
export type Matcher = (request: ProxiedRequest) => boolean;

/** An HTTP proxy in front of a DynamoDB engine, which loses, delays and invents answers as it is told. */
export interface Proxy extends Target {
  /** Every request since the last reset, in the order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** The operations of these requests. */
  readonly operations: readonly string[];
  count(operation: string): number;
  /** Resolves as soon as so many requests that match have arrived since the last reset. */
  arrival(matches: Matcher, times?: number): Promise<ProxiedRequest>;
  /** Treats the next request that matches, or the next few, in a particular way. */
  next(matches: Matcher, behaviour: Behaviour, times?: number): void;
  /** Treats every request that matches in a particular way until the next reset. */
  always(matches: Matcher, behaviour: Behaviour): void;
  /** Sends a recorded request to the engine once more. */
  replay(request: ProxiedRequest): Promise<Answer>;
  /** Forgets rules and requests. */
  reset(): void;
  close(): Promise<void>;
}

/** Matches requests of these operations. */
export function op(...operations: string[]): Matcher {
  return (request) => operations.includes(request.operation);
}

/** Matches every request. */
export const anyRequest: Matcher = () => true;

const pass: Behaviour = async (exchange) => exchange.reply(await exchange.forward());

/** Starts a proxy on a free port, in front of the engine that a client's configuration points to. */
export async function startProxy(engine: Target): Promise<Proxy> {
  const { endpoint } = engine.clientConfig as { readonly endpoint?: unknown };
  if (typeof endpoint !== "string") throw new Error("a proxy needs an engine with an endpoint of its own");
  const upstream = new URL(endpoint);
  const agent = new Agent({ keepAlive: true });
  const arrivals = new EventEmitter().setMaxListeners(0);
  let requests: ProxiedRequest[] = [];
  let rules: { matches: Matcher; behaviour: Behaviour; left: number }[] = [];

  const forward = async (headers: Record<string, string>, body: object): Promise<Answer> => {
    const payload = Buffer.from(JSON.stringify(body));
    const outgoing = sendRequest(upstream, {
      agent,
      method: "POST",
      headers: { ...headers, "content-length": String(payload.length) },
    });
    outgoing.end(payload);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const answer = await text(incoming);
    return { status: incoming.statusCode ?? 0, headers: singleValued(incoming.headers), body: answer };
  };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = JSON.parse(await text(incoming));
    const { connection: _, ...headers } = singleValued(incoming.headers);
    const operation = headers["x-amz-target"]?.split(".")[1] ?? "";
    const request: ProxiedRequest = {
      operation,
      body,
      headers,
      at: performance.now(),
      finishedAt: undefined,
    };
    outgoing.on("close", () => {
      request.finishedAt = performance.now();
    });
    requests.push(request);
    const rule = rules.find(({ matches, left }) => left > 0 && matches(request));
    if (rule) rule.left -= 1;
    arrivals.emit("request", request);
    await (rule?.behaviour ?? pass)({
      request,
      forward: (changed = body) => forward(headers, changed),
      reply: (answer) => {
        if (!outgoing.destroyed) outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      },
      drop: () => outgoing.destroy(),
    });
  };
  const server = createServer((incoming, outgoing) => {
    // The Date header is the engine's, or is left out on purpose.
    outgoing.sendDate = false;
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  // A connection that the server closes as the client reuses it would look like a lost answer.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    clientConfig: { ...engine.clientConfig, endpoint: `http://127.0.0.1:${port}` },
    get requests() {
      return requests;
    },
    get operations() {
      return requests.map((request) => request.operation);
    },
    count: (operation) => requests.filter(op(operation)).length,
    arrival: async (matches, times = 1) => {
      for (;;) {
        const arrived = requests.filter(matches)[times - 1];
        if (arrived !== undefined) return arrived;
        await once(arrivals, "request");
      }
    },
    next: (matches, behaviour, times = 1) => rules.push({ matches, behaviour, left: times }),
    always: (matches, behaviour) => rules.push({ matches, behaviour, left: Number.POSITIVE_INFINITY }),
    replay: ({ headers, body }) => forward(headers, body),
    reset: () => {
      requests = [];
      rules = [];
    },
    close: async () => {
      server.closeAllConnections();
      agent.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function text(stream: IncomingMessage): Promise<string> {
  let whole = "";
  for await (const chunk of stream.setEncoding("utf8")) whole += chunk;
  return whole;
}

function singleValued(headers: IncomingMessage["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
