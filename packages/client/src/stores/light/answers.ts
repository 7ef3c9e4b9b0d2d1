import type { HttpAnswer } from "./exchange.ts";
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
export function readAnswer({ status, body }: HttpAnswer): Said | undefined {
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
export function serviceError({ status }: HttpAnswer, said: Said): Error {
  const { __type, message, Message = message, Item, CancellationReasons } = said;
  return Object.assign(new Error(String(Message ?? "it gives no reason")), {
    name: String(__type).replace(/^.*#/, ""),
    $metadata: { httpStatusCode: status },
    Item,
    CancellationReasons,
  });
}

/** The error of an answer that is not DynamoDB's, but a proxy's, or that of another service's endpoint. */
export function foreignAnswer({ status, headers, body }: HttpAnswer): Error {
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

type FormTest = (value: unknown) => boolean;

const isMap: FormTest = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isItem: FormTest = (value) => isMap(value) && Object.values(value as object).every(isMap);
const listOf =
  (isPart: FormTest): FormTest =>
  (value) =>
    Array.isArray(value) && value.every(isPart);
const isResult: FormTest = (value) => isMap(value) && isItem((value as Said).Item ?? {});
const forms: Readonly<Record<string, FormTest>> = {
  Attributes: isItem,
  Item: isItem,
  LastEvaluatedKey: isItem,
  Items: listOf(isItem),
  Responses: listOf(isResult),
  CancellationReasons: listOf(isResult),
};
