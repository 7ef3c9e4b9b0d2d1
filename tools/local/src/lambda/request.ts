// Checks of requests, with Lambda's limits.

import { InvalidOptionsError } from "@leasehold/client";
import { InvalidRequestContentException, RequestTooLargeException } from "./errors.ts";

/** A payload as the JSON that travels; refuses what is none, and what is too large. */
export function requestText(payload: unknown, limitBytes: number): string {
  // Lambda gives the handler an empty event where the caller gave none.
  const text = payload === undefined ? "{}" : jsonOf(payload);
  if (Buffer.byteLength(text) > limitBytes) throw new RequestTooLargeException(limitBytes);
  return text;
}

/** The id travels in a header and in a URL. */
export function checkRequestId(requestId: unknown): void {
  if (typeof requestId !== "string" || !/^[\w:.-]{1,128}$/.test(requestId)) {
    throw new InvalidOptionsError("requestId", requestId, "1 to 128 letters, digits and characters of :._-");
  }
}

function jsonOf(payload: unknown): string {
  let problem = `a ${typeof payload}`;
  try {
    const text: string | undefined = JSON.stringify(payload);
    if (text !== undefined) return text;
  } catch (error) {
    problem = String(error);
  }
  throw new InvalidRequestContentException(`Could not parse request body into json: ${problem}`);
}
