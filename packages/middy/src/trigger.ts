import type { LeaseUnavailableError } from "@leasehold/client";
import type { WhenHeld } from "./options.ts";

/** The members that distinguish events. */
interface Marks {
  readonly [name: string]: unknown;
  readonly requestContext?: Readonly<Record<string, unknown>>;
}

/** Returns the answer to a request in its trigger's own form. */
type Refusal = (event: Marks, error: LeaseUnavailableError) => object;

/** What an invocation does by default when the lock is held. */
export function defaultWhenHeld(event: unknown, isOnce: boolean): WhenHeld {
  if (refusalFor(event) !== undefined) return "skip";
  return isSchedule(event) || (isOnce && !hasRecords(event)) ? "skip" : "throw";
}

/**
 * The default answer of a skipped invocation: a refusal to a caller that waits for a status, and nothing to others. It
 * names neither the key nor the holder.
 */
export function refusalTo(event: unknown, error: LeaseUnavailableError): object | undefined {
  return refusalFor(event)?.(event as Marks, error);
}

function marksOf(event: unknown): Marks {
  return (event ?? {}) as Marks;
}

/**
 * Records of a queue, a stream, a topic or a pipe: after a success, the source deletes them or passes over them for
 * good.
 */
function hasRecords(event: unknown): boolean {
  const { Records, records, eventSource } = marksOf(event);
  return [event, Records, records].some(Array.isArray) || typeof eventSource === "string";
}

/** The event's type of EventBridge's scheduled rules and, without an input of its own, of EventBridge Scheduler. */
const scheduledEvent = "Scheduled Event";
const schedulers: readonly unknown[] = ["aws.events", "aws.scheduler"];
/** The whole event of a `SingletonJob`. An event with other members may be an order that has a time. */
const jobEvent: readonly string[] = ["job", "scheduledTime", "executionId", "input"];

/** Whether an event is a tick: the next tick asks for the same work. */
function isSchedule(event: unknown): boolean {
  const { source, "detail-type": type, scheduledTime } = marksOf(event);
  if (schedulers.includes(source)) return type === scheduledEvent;
  return (
    typeof scheduledTime === "string" &&
    Object.keys(event as object).every((member) => jobEvent.includes(member))
  );
}

/** The marks of a request: of an HTTP API or a function URL, a REST API, a load balancer, VPC Lattice. */
const requestMarks = ["http", "httpMethod", "elb", "targetGroupArn"];

function refusalFor(event: unknown): Refusal | undefined {
  const { methodArn, routeArn, authorizationToken, raw_path, method, requestContext } = marksOf(event);
  if (typeof methodArn === "string") return deniedByPolicy;
  if (typeof routeArn === "string") return () => ({ isAuthorized: false });
  // VPC Lattice's first version has no context.
  if (typeof raw_path === "string" && typeof method === "string") return locked;
  if (typeof requestContext !== "object" || requestContext === null) return undefined;
  // An AppSync authorizer's, which does not cache this answer for other requests.
  if (typeof authorizationToken === "string") return () => ({ isAuthorized: false, ttlOverride: 0 });
  // A WebSocket begins with a request. Its messages have no status: only an error reaches their sender.
  const isRequest =
    requestContext.eventType === "CONNECT" || requestMarks.some((mark) => mark in requestContext);
  return isRequest ? locked : undefined;
}

function locked(event: Marks, { statusCode, headers }: LeaseUnavailableError): object {
  const answered = { ...headers, "Content-Type": "text/plain" };
  const body = `Locked: try again in ${headers["Retry-After"]} s`;
  // A load balancer accepts headers in the form in which it sends them.
  if (event.headers !== undefined || event.multiValueHeaders === undefined)
    return { statusCode, headers: answered, body };
  const multiValueHeaders = Object.fromEntries(
    Object.entries(answered).map(([name, value]) => [name, [value]]),
  );
  return { statusCode, multiValueHeaders, body };
}

function deniedByPolicy({ methodArn }: Marks): object {
  const statement = { Action: "execute-api:Invoke", Effect: "Deny", Resource: methodArn };
  return { principalId: "locked", policyDocument: { Version: "2012-10-17", Statement: [statement] } };
}
