import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Clock, LeaseClient, LeaseError, LeaseServiceError } from "@leasehold/client";
import { lightStore } from "@leasehold/client/light";
import { Random } from "../../worlds/random.ts";
import type { HoldTerms, Outcome } from "../history.ts";
import { terms } from "../terms.ts";
import type { WorkerConfig } from "./config.ts";
import { type Answer, type Holdable, Journal } from "./journal.ts";

/** What each workload of a process works with. */
export class WorkContext {
  readonly config: WorkerConfig;
  readonly random: Random;
  readonly journal: Journal;
  readonly client: LeaseClient;
  /** For the registers. One attempt each: what is not answered is not repeated, so each request is one operation. */
  readonly items: DynamoDBClient;

  constructor(config: WorkerConfig) {
    const { clientConfig, tableName, name } = config;
    this.config = config;
    this.random = new Random(config.seed);
    this.journal = new Journal(config.journal);
    const requestHandler = { requestTimeout: 3_000, throwOnRequestTimeout: true };
    this.items = new DynamoDBClient({ ...clientConfig, maxAttempts: 1, requestHandler });
    const { leaseDurationMs, clockSkewMs } = terms;
    const { endpoint, region, credentials } = clientConfig;
    this.client = new LeaseClient({
      owner: `${name} on ${hostname()}`,
      leaseDurationMs,
      clockSkewMs,
      clock: wrongClock(config.wallMs),
      ...(config.store === "light"
        ? { store: lightStore({ tableName, endpoint, region, credentials }) }
        : { tableName, dynamodb: new DynamoDBClient({ ...clientConfig }) }),
    });
  }

  /**
   * Holds something for a while, and asks again and again whether it is still held. `work` begins at a random moment of that
   * time; what it gives ends the work: when the time is over, or some time after the lease was lost, when another may hold it.
   * A long time is longer than a lease without a heartbeat.
   */
  async hold(
    lease: Holdable,
    held: Omit<HoldTerms, "permits" | "attempt" | "kind"> & Partial<HoldTerms>,
    work?: () => Promise<() => Promise<void>>,
    isLong: boolean = this.random.chance(0.03),
  ): Promise<void> {
    const { random, journal } = this;
    const id = journal.hold({ kind: "exclusive", permits: 1, attempt: 0, ...held });
    const steps = isLong ? random.integer(100, 200) : random.integer(0, 15);
    const beginsAt = random.integer(0, Math.min(steps, 15));
    let end: (() => Promise<void>) | undefined;
    for (let step = 0; step <= steps && journal.ask(id, lease); step += 1) {
      if (step === beginsAt) end = await work?.();
      await sleep(random.between(5, 35));
    }
    if (!journal.ask(id, lease)) await sleep(random.between(0, longestDeafnessMs));
    await end?.();
  }
}

/** For how long a holder goes on that has not noticed its loss. */
const longestDeafnessMs = 4_000;

/**
 * What an error says of the call that it ended. Rethrows what is no named error: that is a mistake, and a violation.
 */
export function outcomeOf(error: unknown): { readonly outcome: Outcome; readonly code: string } {
  if (!(error instanceof LeaseError)) throw error;
  // Of several tries, an earlier one may have landed.
  return { outcome: error instanceof LeaseServiceError ? "unknown" : "refused", code: error.code };
}

/** Does what a call is for: a named error that ends it is the call's answer, and gives undefined. */
export async function answering<Result>(
  answer: Answer,
  act: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await act();
  } catch (error) {
    const { outcome, code } = outcomeOf(error);
    answer(outcome, { code });
    return undefined;
  }
}

/** The machine's clocks, of which the wall clock is wrong. */
function wrongClock(wallMs: number): Clock {
  return {
    now: () => Date.now() + wallMs,
    monotonic: () => Number(process.hrtime.bigint()) / 1e6,
    schedule: (callback, delayMs, options) => {
      const timer = setTimeout(callback, delayMs);
      if (options?.background) timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
