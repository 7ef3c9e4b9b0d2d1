// Where failed events and dead letters go: a queue, a function, or a topic that is only reported.

import type { FunctionSpec } from "../assembly/types.ts";
import type { AsyncFailureRecord } from "../lambda/types.ts";
import type { QueueMessage, Queues } from "../services/queues.ts";

/** Where messages can go. */
export interface DestinationPorts {
  readonly queues: Queues;
  /** Hands an event to the function of an ARN; false if it is not one of the app's. */
  readonly invokeAsync: (functionArn: string, payload: unknown) => boolean;
  /** Takes a message for a target that nothing here reads, such as a topic. */
  readonly onMessage: (target: string, message: QueueMessage) => void;
  readonly now: () => number;
}

/** Delivers what was given up to the queue, function or topic of an ARN. */
export class Destinations {
  readonly #ports: DestinationPorts;

  constructor(ports: DestinationPorts) {
    this.#ports = ports;
  }

  send(targetArn: string, payload: unknown, attributes: Readonly<Record<string, string>> = {}): void {
    const { queues, invokeAsync, onMessage, now } = this.#ports;
    const body = typeof payload === "string" ? payload : JSON.stringify(payload);
    if (queues.find(targetArn)) {
      queues.send(targetArn, body, attributes);
    } else if (!invokeAsync(targetArn, payload)) {
      onMessage(targetArn, { id: crypto.randomUUID(), body, attributes, sentAt: now() });
    }
  }

  /** An asynchronous event was given up: its record goes to the destination, itself to the dead letters. */
  eventFailed({ onFailureArn, deadLetterArn }: FunctionSpec, record: AsyncFailureRecord): void {
    if (onFailureArn !== undefined) this.send(onFailureArn, record);
    if (deadLetterArn === undefined) return;
    const { requestId, condition } = record.requestContext;
    const failed = record.responsePayload as { errorMessage?: unknown } | null | undefined;
    this.send(deadLetterArn, record.requestPayload, {
      RequestID: requestId,
      ErrorCode: "200",
      ErrorMessage: String(failed?.errorMessage ?? condition),
    });
  }
}
