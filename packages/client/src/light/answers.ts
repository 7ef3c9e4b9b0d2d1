import type { Answer } from "./exchange.ts";
import { unanswered } from "./exchange.ts";

/** An answer of DynamoDB: an object in JSON, with the members that a store reads. */
export interface Said {
  readonly __type?: unknown;
  readonly message?: unknown;
  readonly Message?: unknown;
  readonly Attributes?: unknown;
  readonly Item?: unknown;
  readonly CancellationReasons?: unknown;
}

/** Reads DynamoDB's answer; undefined if the answer is not DynamoDB's. */
export function readAnswer({ status, body }: Answer): Said | undefined {
  try {
    const said: Said = JSON.parse(body);
    const isOurs = isMap(said) && Object.entries(said).every(([name, value]) => forms[name]?.(value) ?? true);
    return isOurs && (status === 200 || typeof said.__type === "string") ? said : undefined;
  } catch {
    // Ignored: it is no JSON.
    return undefined;
  }
}

/** The service's error, with its name, as the SDK would throw it. */
export function serviceError({ status }: Answer, said: Said): Error {
  const { __type, message, Message = message, Item, CancellationReasons } = said;
  return Object.assign(new Error(String(Message ?? "it gives no reason")), {
    name: String(__type).replace(/^.*#/, ""),
    $metadata: { httpStatusCode: status },
    Item,
    CancellationReasons,
  });
}

/** The error of an answer that is not DynamoDB's, but a proxy's, or that of another service's endpoint. */
export function foreignAnswer({ status, headers, body }: Answer): Error {
  const { location, "content-type": type = "no content type", "content-encoding": encoding } = headers;
  const parts = [
    `status ${status}`,
    type,
    ...(encoding === undefined ? [] : [encoding]),
    ...(location === undefined ? [] : [`a redirection to ${location}`]),
    `${body.length} characters that begin with ${JSON.stringify(body.slice(0, 60))}`,
  ];
  const error = unanswered(`the answer is not DynamoDB's: ${parts.join(", ")}`);
  // After an unreadable success, a write may have landed.
  return status < 300 ? error : Object.assign(error, { $metadata: { httpStatusCode: status } });
}

type Test = (value: unknown) => boolean;

const isMap: Test = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isItem: Test = (value) => isMap(value) && Object.values(value as object).every(isMap);
const listOf =
  (isPart: Test): Test =>
  (value) =>
    Array.isArray(value) && value.every(isPart);
const isResult: Test = (value) => isMap(value) && isItem((value as Said).Item ?? {});
const forms: Readonly<Record<string, Test>> = {
  Attributes: isItem,
  Item: isItem,
  LastEvaluatedKey: isItem,
  Items: listOf(isItem),
  Responses: listOf(isResult),
  CancellationReasons: listOf(isResult),
};
