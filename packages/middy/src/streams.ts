import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";

type Stream = Readable | ReadableStream<unknown>;

/** The stream of a response: the response itself, or its body. */
export function streamOf(response: unknown): Stream | undefined {
  if (isStream(response)) return response;
  const body = (response as { readonly body?: unknown } | null | undefined)?.body;
  return isStream(body) ? body : undefined;
}

/**
 * Returns the response with another stream, which ends only when the hold has: so a reader of the whole stream waits for
 * the release. The hold has succeeded when the whole stream was read.
 */
export function withStreamEnd(
  response: unknown,
  stream: Stream,
  leave: (outcome: "succeeded" | "failed") => Promise<void>,
): unknown {
  const reader = stream instanceof Readable ? undefined : stream.getReader();
  // Not the web stream's own iterator: it cannot be ended while a part is under way.
  const parts = reader ? { [Symbol.asyncIterator]: () => ({ next: () => reader.read() }) } : stream;
  const untilEnd = async function* (): AsyncGenerator<unknown, void, undefined> {
    yield* parts;
    if (!guarded.destroyed) await leave("succeeded");
  };
  const guarded: Readable = Readable.from(untilEnd());
  const destroy = guarded._destroy;
  guarded._destroy = (error, callback) => {
    // At once: the rest waits for the part that is under way, and its source may have none for a long time.
    // Ignored: it has failed, and its reader has the error.
    if (reader) reader.cancel().catch(() => undefined);
    else (stream as Readable).destroy();
    destroy.call(guarded, error, (failure) => void leave("failed").then(() => callback(failure)));
  };
  // A platform's Response, by its tag, reads the stream that it was created from, whatever its member is.
  if (Object.prototype.toString.call(response) === "[object Response]") {
    const body = Readable.toWeb(guarded) as ConstructorParameters<typeof Response>[0];
    return new Response(body, response as Response);
  }
  if (response === stream) return guarded;
  const body = { value: guarded, writable: true, configurable: true, enumerable: true };
  // In the object itself, so that it keeps its class and its private state.
  if (Reflect.defineProperty(response as object, "body", body)) return response;
  return Object.create(Object.getPrototypeOf(response), {
    ...Object.getOwnPropertyDescriptors(response),
    body,
  });
}

/** A web stream by its method: loading the platform's class takes longer than loading this middleware. */
function isStream(value: unknown): value is Stream {
  return (
    value instanceof Readable || typeof (value as Partial<ReadableStream> | null)?.getReader === "function"
  );
}
