import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";

/** The stream of a response: the response itself, or its body. */
export function streamOf(response: unknown): AsyncIterable<unknown> | undefined {
  if (isStream(response)) return response;
  const body = (response as { readonly body?: unknown } | null | undefined)?.body;
  return isStream(body) ? body : undefined;
}

/**
 * Returns the response with another stream, which ends only when `onEnd` has: so a reader of the whole stream waits for
 * `onEnd`. `onEnd` learns whether the whole stream was read.
 */
export function withStreamEnd(
  response: unknown,
  stream: AsyncIterable<unknown>,
  onEnd: (isWhole: boolean) => Promise<void>,
): unknown {
  const guarded = Readable.from(untilEnd(stream, onEnd));
  // A stream that is destroyed before anybody has read it has not begun: it ends here.
  guarded.once("close", () => {
    if (stream instanceof Readable) stream.destroy();
    // Ignored: it has ended, or its reader ends it.
    else (stream as ReadableStream).cancel().catch(() => undefined);
    void onEnd(false);
  });
  // A platform's Response reads the stream that it was created from, whatever its member is.
  if (isPlatformResponse(response)) {
    return new Response(Readable.toWeb(guarded) as ConstructorParameters<typeof Response>[0], response);
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

/** By its tag, for the reason of {@link isWebStream}. */
function isPlatformResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === "[object Response]";
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return value instanceof Readable || isWebStream(value);
}

/** By its method: loading the platform's class takes longer than loading this middleware. */
function isWebStream(value: unknown): value is ReadableStream<unknown> {
  return typeof (value as Partial<ReadableStream> | null | undefined)?.getReader === "function";
}
