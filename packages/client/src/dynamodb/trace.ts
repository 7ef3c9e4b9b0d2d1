import type { CallOptions } from "../time/budget.ts";
import type { Clock } from "../time/clock.ts";
import { type ClockOffset, offsetFromDate } from "../time/skew.ts";
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
  readonly #clock: Clock;
  readonly #call: CallOptions;
  count = 0;
  /** Measured on the last attempt that was answered. */
  offset: ClockOffset | undefined;
  lastError: unknown;

  /** Watches a command; the client it is sent through stays as it is. */
  constructor(clock: Clock, command: Traceable, call: CallOptions) {
    this.#clock = clock;
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
    const sentAt = this.#clock.now();
    try {
      const result = await next(args);
      this.#measure(result.response, sentAt);
      return result;
    } catch (error) {
      this.lastError = error;
      // It passes in milliseconds, but the SDK repeats only what is marked so.
      if (isConflict(error)) Object.assign(error as Error, { $retryable: {} });
      this.#measure((error as { $response?: WithHeaders }).$response, sentAt);
      throw error;
    }
  }

  #measure(response: WithHeaders | undefined, sentAt: number): void {
    this.offset = offsetFromDate(response?.headers?.date, sentAt, this.#clock.now());
  }
}
