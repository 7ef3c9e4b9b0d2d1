// Queues, as far as messages are sent.

import type { QueueSpec } from "../assembly/types.ts";
import { ServiceError } from "./errors.ts";

/** A message in a queue. */
export interface QueueMessage {
  readonly id: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  readonly sentAt: number;
}

/** Queues that keep their messages to be looked at: nothing consumes them here. */
export class Queues {
  readonly #messages = new Map<string, QueueMessage[]>();
  readonly #queues: readonly QueueSpec[];
  readonly #now: () => number;

  constructor(queues: readonly QueueSpec[], now: () => number) {
    this.#queues = queues;
    this.#now = now;
    for (const { arn } of queues) this.#messages.set(arn, []);
  }

  /** The queue of a name, an ARN or a URL. */
  find(address: string): QueueSpec | undefined {
    return this.#queues.find(({ name, arn, url }) => [name, arn, url].includes(address));
  }

  /** The messages of a queue, the oldest first. */
  messages(queue: QueueSpec): readonly QueueMessage[] {
    return this.#messages.get(queue.arn) ?? [];
  }

  /** Puts a message into the queue of a name, an ARN or a URL. Throws ServiceError `QueueDoesNotExist`. */
  send(address: string, body: string, attributes: Readonly<Record<string, string>> = {}): QueueMessage {
    const queue = this.find(address);
    if (queue === undefined) throw new ServiceError("QueueDoesNotExist", `there is no queue ${address}`);
    const message = { id: crypto.randomUUID(), body, attributes, sentAt: this.#now() };
    this.#messages.get(queue.arn)?.push(message);
    return message;
  }
}
