import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "@leasehold/client";
import { docsAddress } from "../docs.ts";
import type { Finding } from "../table/findings.ts";
import { durationText } from "../terminal/durations.ts";

/**
 * How far this machine's clock is from the service's, by the Date headers of all answers. Each header has the service's
 * time to a second, for a moment between a request and its answer. So every answer narrows the bounds.
 */
export class ClockWatch {
  readonly #clock: Clock;
  /** The service's time less this machine's, in milliseconds. */
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Listens to a client's answers, including refusals. */
  watch(dynamodb: DynamoDBClient): void {
    dynamodb.middlewareStack.add(
      (next) => async (args) => {
        const sentAt = this.#clock.now();
        const result = await next(args);
        const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
        this.note(headers?.date, sentAt, this.#clock.now());
        return result;
      },
      // Before answers become errors.
      { step: "deserialize", priority: "low", name: "clockWatch" },
    );
  }

  /** Notes an answer's Date, when its request was sent, and when it arrived. */
  note(date: string | undefined, sentAt: number, arrivedAt: number): void {
    const time = Date.parse(date ?? "");
    if (Number.isNaN(time)) return;
    this.#least = Math.max(this.#least, time - arrivedAt);
    this.#most = Math.min(this.#most, time + 1_000 - sentAt);
  }

  /** The result; an error if the clock is certainly off by more than the allowance. */
  finding(allowedMs: number): Finding {
    const check = "clock";
    if (!Number.isFinite(this.#least)) {
      return { check, result: "not checked", text: "the answers have no Date header" };
    }
    // Crossing bounds show a clock that was set meanwhile, or a service with several clocks: then the middle is good
    // enough.
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
      docs: docsAddress("RUNBOOK.md#the-clock"),
    };
  }
}
