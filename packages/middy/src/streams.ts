import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";

/** The stream that a response consists of, or has for its body. */
export function streamOf(response: unknown): AsyncIterable<unknown> | undefined {
  if (isStream(response)) return response;
  const body = (response as { readonly body?: unknown } | null | undefined)?.body;
  return isStream(body) ? body : undefined;
}

/**
 * Gives the response with a stream in place of its own that ends only when `onEnd` has: what reads it to its end has
 * then waited for it. `onEnd` learns whether the whole stream was read.
 */
export function withStreamEnd(
  response: unknown,
  stream: AsyncIterable<unknown>,
  onEnd: (isWhole: boolean) => Promise<void>,
): unknown {
  const guarded = Readable.from(untilEnd(stream, onEnd));
  return response === stream ? guarded : { ...(response as object), body: guarded };
}

async function* untilEnd(
  stream: AsyncIterable<unknown>,
  onEnd: (isWhole: boolean) => Promise<void>,
): AsyncGenerator<unknown, void, undefined> {
  let isWhole = false;
  try {
    yield* stream;
    isWhole = true;
  } finally {
    await onEnd(isWhole);
  }
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return value instanceof Readable || isWebStream(value);
}

/** By its method: to load the platform's class takes longer than to load this middleware. */
function isWebStream(value: unknown): value is ReadableStream<unknown> {
  return typeof (value as Partial<ReadableStream> | null | undefined)?.getReader === "function";
}
