import type { CallOptions } from "../time/budget.ts";
import type { ServiceTime } from "../time/service-clock.ts";
import { type Attempts, isConflict } from "./errors.ts";

/** As much of the SDK's middleware as is used here; its own types differ between the two SDK packages. */
interface Traceable {
  readonly middlewareStack: {
    // biome-ignore lint/suspicious/noExplicitAny: the SDK's middleware types depend on the command.
    add(middleware: (next: any) => (args: any) => Promise<any>, options: object): void;
  };
}

interface WithHeaders {
  readonly headers?: { readonly date?: string };
}

/** What one command's attempts on the wire have shown. */
export class Trace implements Attempts {
  readonly #call: CallOptions;
  count = 0;
  lastError: unknown;

  /** Watches a command; the client it is sent through stays as it is. */
  constructor(command: Traceable, call: CallOptions) {
    this.#call = call;
    // In front of the deserializer and behind the retries, a middleware sees every attempt with its error parsed.
    command.middlewareStack.add((next) => (args) => this.#attempt(next, args), {
      name: "leaseholdTrace",
      step: "deserialize",
      priority: "high",
    });
  }

  async #attempt(
    next: (args: unknown) => Promise<{ response: WithHeaders }>,
    args: unknown,
  ): Promise<{ response: WithHeaders }> {
    // Behind the signing too: what is frozen from here on, DynamoDB refuses for the age of its signature.
    if (!this.#call.isCurrent()) throw new Error("the request was too old to be sent");
    this.count += 1;
    const answered = this.#call.timed?.();
    try {
      const result = await next(args);
      answered?.(timeIn(result.response));
      return result;
    } catch (error) {
      this.lastError = error;
      // It passes in milliseconds, but the SDK repeats only what is marked so.
      if (isConflict(error)) Object.assign(error as Error, { $retryable: {} });
      const { $response } = error as { readonly $response?: WithHeaders };
      if ($response !== undefined) answered?.(timeIn($response));
      throw error;
    }
  }
}

/** The Date header's resolution: it names the second in which the answer was made. */
const dateResolutionMs = 1000;

/** Reads the service's time from an answer's Date header; undefined where it is missing or unreadable. */
function timeIn({ headers }: WithHeaders): ServiceTime | undefined {
  const earliest = headers?.date === undefined ? Number.NaN : Date.parse(headers.date);
  return Number.isNaN(earliest) ? undefined : { earliest, latest: earliest + dateResolutionMs };
}
