import { Readable } from "node:stream";

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
  // Node makes `ReadableStream` only when it is asked for: most responses are no streams.
  const isIterable = Symbol.asyncIterator in Object(value);
  return isIterable && (value instanceof Readable || value instanceof ReadableStream);
}
