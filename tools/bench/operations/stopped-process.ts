import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";

interface Answered {
  readonly response?: { readonly headers?: Record<string, string | undefined> };
}

/** Of a request that has taken effect. It is of a kind that the SDK does not repeat. */
export class LostReplyError extends Error {}

/** Options of a client whose chances are all the same, so that its requests can be counted. */
export const steady: LeaseClientOptions = {
  randomness: { token: () => crypto.randomUUID(), fraction: () => 0.5 },
};

/**
 * A process whose time passes only when the caller moves it, and never while a request is under way.
 *
 * Answers tell it its own time, so its clock may be an hour behind: then its leases are those of a dead holder. So what its clients send while they wait can be counted, and takes no real time.
 */
export class StoppedProcess extends ManualClock {
  readonly #tableName: string;
  readonly #dynamodb: DynamoDBClient;
  readonly #underWay = new Set<Promise<unknown>>();
  #losesReply = false;

  constructor(tableName: string, dynamodb: DynamoDBClient, agoMs: number) {
    super(Date.now() - agoMs);
    this.#tableName = tableName;
    this.#dynamodb = dynamodb;
  }

  /** A lease client of this process. */
  client(options: LeaseClientOptions = {}): LeaseClient {
    const dynamodb: DynamoDBClient = Object.create(this.#dynamodb, {
      send: { value: (...call: Parameters<DynamoDBClient["send"]>) => this.#send(...call) },
    });
    return new LeaseClient({ tableName: this.#tableName, dynamodb, clock: this, ...steady, ...options });
  }

  /** The reply to the next request that succeeds gets lost on its way. */
  loseReply(): void {
    this.#losesReply = true;
  }

  /** Lets all that is under way settle, without letting time pass. */
  override async settle(): Promise<void> {
    await super.settle();
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay);
      await super.settle();
    }
  }

  async #send(command: Parameters<DynamoDBClient["send"]>[0], ...rest: unknown[]): Promise<unknown> {
    command.middlewareStack.add(
      (next) => async (args) => {
        const answer = await next(args);
        const { headers } = (answer as Answered).response ?? {};
        if (headers !== undefined) headers.date = new Date(this.now()).toUTCString();
        return answer;
      },
      { step: "deserialize", priority: "low", name: "ownTime" },
    );
    command.middlewareStack.add(
      (next) => async (args) => {
        const answer = await next(args);
        if (!this.#losesReply) return answer;
        this.#losesReply = false;
        throw new LostReplyError("the reply was lost");
      },
      { step: "deserialize", priority: "high", name: "lostReply" },
    );
    const sent = (this.#dynamodb.send as (...call: unknown[]) => Promise<unknown>)(command, ...rest);
    this.#underWay.add(sent);
    try {
      return await sent;
    } finally {
      this.#underWay.delete(sent);
    }
  }
}
