import type { Agent, RequestOptions } from "node:http";
import { unlessAborted } from "../../base/abort.ts";
import { type Clock, pause, type Randomness } from "../../base/clock.ts";
import type { DynamoDBSender } from "../../base/options.ts";
import { isConflict, isThrottling } from "../sdk/errors.ts";
import { type CallAttempts, type Operations, type Transport, timeRefusals } from "../sdk/transport.ts";
import type { CredentialsCache } from "./credentials.ts";
import type { Endpoint } from "./endpoint.ts";
import {
  exchange,
  foreignAnswer,
  httpModule,
  readAnswer,
  type SendRequest,
  serviceError,
  unanswered,
} from "./exchange.ts";
import {
  type Destination,
  loadSign,
  type Sign,
  type Signer,
  type SigningTime,
  signedHeaders,
} from "./signing.ts";

/** The parts of a transport. */
export interface HttpTransportParts {
  /** Determines the destination, at the first request. */
  readonly endpoint: () => Endpoint;
  readonly credentials: CredentialsCache;
  readonly time: SigningTime;
  readonly ca: string | Buffer | undefined;
  readonly maxAttempts: number;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** The common properties of all requests. */
interface Route {
  readonly sign: Sign;
  readonly destination: Destination;
  readonly send: SendRequest;
  readonly options: RequestOptions & { readonly agent: Agent };
}

/** DynamoDB answers in milliseconds, so a slower answer counts as lost. */
const attemptMs = 2_000;
const mostConnections = 50;

/** Sends requests by HTTPS, each copy signed as it is sent, over connections that are kept alive. */
export class HttpTransport implements Transport {
  readonly sender: DynamoDBSender;
  readonly #parts: HttpTransportParts;
  #route: Route | undefined;

  constructor(parts: HttpTransportParts) {
    this.#parts = parts;
    // Reports the endpoint as an SDK client does, for messages.
    const endpoint = async (): Promise<object> => {
      const { protocol, hostname, port } = parts.endpoint().url;
      return { protocol, hostname, port: port || undefined };
    };
    const config = { region: async () => parts.endpoint().region, endpoint };
    this.sender = { config } as unknown as DynamoDBSender;
    // A store is often made at a function's start, where there is more CPU than at its first call.
    // Ignored: every call rejects with the error.
    loadSign().catch(() => undefined);
  }

  async send<Operation extends keyof Operations>(
    operation: Operation,
    input: Operations[Operation][0],
    attempts: CallAttempts,
  ): Promise<Operations[Operation][1]> {
    const { credentials, time, clock, randomness, maxAttempts } = this.#parts;
    const { signal } = attempts.call;
    const body = JSON.stringify(input);
    const route = this.#route ?? (await this.#open());
    let mayReplace = true;
    for (;;) {
      const { offsetMs } = time;
      let signer: Signer | undefined;
      try {
        const given = credentials.get();
        signer = given instanceof Promise ? await unlessAborted(given, signal) : given;
        return (await this.#attempt(route, operation, body, signer, attempts)) as Operations[Operation][1];
      } catch (error) {
        const { name } = error as Error;
        attempts.lastError = error;
        attempts.end(error);
        if (signal.aborted) throw error;
        let isCorrected = timeRefusals.test(name) && time.offsetMs !== offsetMs;
        // Also after the last attempt: the next call needs them.
        if (expiries.has(name) && mayReplace && signer !== undefined) {
          mayReplace = false;
          isCorrected = await unlessAborted(credentials.replace(signer), signal);
        }
        if (attempts.count >= maxAttempts) throw error;
        if (isCorrected) continue;
        const longestMs = longestPauseAfter(error, attempts.count);
        if (longestMs === undefined) throw error;
        await pause(clock, longestMs * randomness.fraction(), signal);
        if (signal.aborted) throw error;
      }
    }
  }

  /** Closes the connections. */
  destroy(): void {
    this.#route?.options.agent.destroy();
    this.#route = undefined;
  }

  async #open(): Promise<Route> {
    const sign = await loadSign();
    const { region, url } = this.#parts.endpoint();
    const { Agent, request } = await httpModule(url.protocol);
    const { ca } = this.#parts;
    this.#route ??= {
      sign,
      destination: { region, host: url.host, path: url.pathname },
      send: request,
      options: {
        hostname: url.hostname.replace(/^\[|\]$/g, ""),
        port: url.port,
        path: url.pathname,
        method: "POST",
        timeout: attemptMs,
        agent: new Agent({ keepAlive: true, maxSockets: mostConnections, ...(ca && { ca }) }),
      },
    };
    return this.#route;
  }

  async #attempt(
    { sign, destination, send, options }: Route,
    operation: keyof Operations,
    body: string,
    signer: Signer,
    attempts: CallAttempts,
  ): Promise<object> {
    const { time } = this.#parts;
    const answered = attempts.begin();
    const headers = signedHeaders(sign, destination, operation, body, signer, time.now());
    const answer = await exchange(send, { ...options, headers }, body, attempts.call.signal);
    const said = readAnswer(answer);
    if (said === undefined) throw foreignAnswer(answer);
    answered(answer.headers);
    time.note(answer.headers.date);
    if (answer.status !== 200) throw serviceError(answer, said);
    const wanted = body.includes('"ReturnValues":"ALL_NEW"') ? "Attributes" : wantedOf[operation];
    if (wanted !== undefined && !(wanted in said)) throw unanswered(`the answer has no ${wanted}`);
    return said;
  }
}

/** The member that an answer must have. */
const wantedOf: { readonly [Operation in keyof Operations]?: string } = {
  BatchExecuteStatement: "Responses",
  Query: "Items",
  Scan: "Items",
};

/** Its errors for expired credentials. */
const expiries: ReadonlySet<string> = new Set(["ExpiredToken", "ExpiredTokenException"]);

/** Errors of a connection that another attempt may not meet. */
const passingCodes = /^E(CONNRESET|CONNREFUSED|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/;

/** The longest wait before the next attempt; undefined if that attempt would fail, too. */
function longestPauseAfter(error: unknown, count: number): number | undefined {
  const {
    name,
    code = "",
    $metadata,
  } = error as NodeJS.ErrnoException & {
    readonly $metadata?: { readonly httpStatusCode: number };
  };
  const status = $metadata?.httpStatusCode;
  if (isThrottling(error)) return Math.min(500 * 2 ** (count - 1), 20_000);
  const passes =
    isConflict(error) ||
    (status === undefined
      ? name === "UnansweredError" || passingCodes.test(code)
      : [500, 502, 503, 504].includes(status));
  return passes ? Math.min(50 * 2 ** (count - 1), 20_000) : undefined;
}
