import { LeaseError } from "@leasehold/client";
import type { Context } from "aws-lambda";
import { KeyNotAllowedError } from "./input.ts";

/** What a handler needs to know of its invocation. */
export type Invocation = Pick<Context, "getRemainingTimeInMillis">;

/** A handler as Lambda calls it. Whatever comes in is not to be trusted. */
export type Answering<T> = (event: unknown, context: Invocation) => Promise<T>;

/**
 * Makes a handler whose errors other languages and state machines can tell apart.
 *
 * Lambda passes on nothing of an error but its name, as `errorType`, and its message. So the name is the error class's,
 * and the message ends with a line of JSON that has the error's fields:
 *
 *     errorType     LeaseUnavailableError
 *     errorMessage  the lock "import" is held by "A" until …\n{"code":"LEASE_UNAVAILABLE","retryAfterMs":1200,…}
 *
 * In a state machine's JSONata: `$parse($substringAfter($parse($states.errorOutput.Cause).errorMessage, "\n"))`.
 */
export function answering<T>(work: Answering<T>): Answering<T> {
  return async (event, context) => {
    try {
      return await work(event, context);
    } catch (error) {
      throw forLambda(error);
    }
  };
}

/** The fields of an error that a handler has answered with, from its message. Throws for a message of another kind. */
export function errorFieldsIn(errorMessage: string): object {
  return JSON.parse(errorMessage.split("\n").at(-1) ?? "") as object;
}

/** Gives an error the name and the message under which Lambda shows it; errors that are not ours stay as they are. */
export function forLambda(error: unknown): unknown {
  if (!(error instanceof LeaseError || error instanceof KeyNotAllowedError)) return error;
  // The refused value stays out: it can be long, and the message says what was wrong with it.
  const fields = { ...error, name: undefined, value: undefined, cause: undefined };
  const [message] = error.message.split("\n");
  const shown = new Error(`${message}\n${JSON.stringify(fields)}`, { cause: error });
  shown.name = error.name;
  if (error.stack !== undefined) shown.stack = error.stack;
  return shown;
}
