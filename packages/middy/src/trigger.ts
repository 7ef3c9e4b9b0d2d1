import type { LeaseUnavailableError } from "@leasehold/client";

/**
 * Whether an event carries records: its trigger deletes them, or passes over them for good, when the invocation
 * succeeds. Queues, streams and topics deliver `Records`; Kafka, MQ and DocumentDB name their `eventSource` beside theirs.
 */
export function hasRecords(event: unknown): boolean {
  const { Records, eventSource } = (event ?? {}) as {
    readonly Records?: unknown;
    readonly eventSource?: unknown;
  };
  return Array.isArray(Records) || typeof eventSource === "string";
}

/** What tells a request: of an HTTP API or a function URL, a REST API, a load balancer, a WebSocket API. */
const requestMarks = ["http", "httpMethod", "elb", "connectionId"];

/** Whether an event is a request of an API, whose caller waits for a response with a status. */
export function isHttpRequest(event: unknown): boolean {
  const { requestContext } = (event ?? {}) as { readonly requestContext?: unknown };
  if (typeof requestContext !== "object" || requestContext === null) return false;
  return requestMarks.some((mark) => mark in requestContext);
}

/** The response to a request that found the lock held. It names neither the key nor the holder. */
export function lockedResponse({ statusCode, headers }: LeaseUnavailableError): object {
  return {
    statusCode,
    headers: { ...headers, "Content-Type": "text/plain" },
    body: `Locked: try again in ${headers["Retry-After"]} s`,
  };
}
