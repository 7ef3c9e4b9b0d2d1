import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "@leasehold/client";
import { docsAddress } from "../docs.ts";
import type { Finding } from "../table/findings.ts";
import { durationText } from "../terminal/durations.ts";

/**
 * How far this machine's clock is from the service's, by the Date headers of all answers. Each says the service's time to a
 * second, for a moment between a request and its answer; so every answer narrows the bounds.
 */
export class ClockWatch {
  readonly #clock: Clock;
  /** The service's time less this machine's, in milliseconds. */
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Listens to the answers that a client gets, those that refuse too. */
  watch(dynamodb: DynamoDBClient): void {
    dynamodb.middlewareStack.add(
      (next) => async (args) => {
        const sentAt = this.#clock.now();
        const result = await next(args);
        const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
        this.note(headers?.date, sentAt, this.#clock.now());
        return result;
      },
      // Below what makes errors of answers.
      { step: "deserialize", priority: "low", name: "clockWatch" },
    );
  }

  /** Takes note of an answer's Date, and of when its request was sent and it arrived. */
  note(date: string | undefined, sentAt: number, arrivedAt: number): void {
    const time = Date.parse(date ?? "");
    if (Number.isNaN(time)) return;
    this.#least = Math.max(this.#least, time - arrivedAt);
    this.#most = Math.min(this.#most, time + 1_000 - sentAt);
  }

  /** What is known; an error where the clock is off by more than the allowance for certain. */
  finding(allowedMs: number): Finding {
    const check = "clock";
    if (!Number.isFinite(this.#least)) {
      return { check, result: "not checked", text: "the answers have no Date header" };
    }
    // Bounds that cross show a clock that was set meanwhile, or a service of many clocks: then the middle is as good.
    const aheadMs = (this.#least + this.#most) / 2;
    const certainMs = Math.max(0, this.#least, -this.#most);
    const direction = aheadMs > 0 ? "behind" : "ahead of";
    const text = `about ${durationText(Math.abs(aheadMs))} ${direction} DynamoDB's (allowed ${durationText(allowedMs)})`;
    if (certainMs <= allowedMs) return { check, result: "ok", text };
    return {
      check,
      result: "error",
      text,
      fix: "turn on time synchronisation (chrony, Amazon Time Sync). No lock depends on it; signatures and logs do",
      docs: docsAddress("troubleshooting.md#the-clock"),
    };
  }
}
