import { Readable, Writable } from "node:stream";
import { inspect } from "node:util";
import { type LeaseLockOptions, leaseLock } from "@leasehold/middy";
import middy, { type MiddlewareObj, type PluginExecutionMode } from "@middy/core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/patience.ts";
import { bench, ways } from "./support.ts";

describe("streaming", () => {
  let mode: PluginExecutionMode;
  beforeAll(async () => {
    // What Lambda's runtime provides.
    Object.assign(globalThis, {
      awslambda: {
        streamifyResponse: (handler: unknown) => handler,
        HttpResponseStream: { from: (stream: unknown) => stream },
      },
    });
    ({ executionModeStreamifyResponse: mode } = await import("@middy/core/StreamifyResponse"));
  });
  afterAll(() => {
    delete (globalThis as { awslambda?: unknown }).awslambda;
  });

  interface StreamOptions extends LeaseLockOptions {
    /** What an outer middleware does after the handler. */
    readonly outer?: NonNullable<MiddlewareObj["after"]>;
    /** Whether the caller goes away. */
    readonly breaks?: boolean;
  }

  /** Lets an app with a lock answer into a stream; gives what was written, and who held the lock at each part. */
  async function run(
    handler: () => unknown,
    { outer = () => undefined, breaks, ...more }: StreamOptions = {},
  ) {
    const b = bench();
    if (more.whenHeld !== undefined) await b.other.acquire("job");
    const heldAt: unknown[] = [];
    let text = "";
    const output = new Writable({
      async write(chunk, _encoding, callback) {
        heldAt.push(await b.holder());
        text += chunk;
        callback(breaks ? new Error("gone") : undefined);
      },
    });
    const options = { once: () => "slot", skipResult: "skipped", ...b.options, ...more };
    const app = middy(async () => handler(), { executionMode: mode })
      .use({ after: outer })
      .use(leaseLock(options));
    const call = app as unknown as (...args: unknown[]) => Promise<void>;
    const outcome = await call({}, output, b.context()).then(
      () => "ended",
      (error: Error) => error.message,
    );
    await b.clock.advance(0);
    const holder = await b.holder();
    const slot = (await b.other.tryAcquire("job", { slot: "slot" })) === undefined ? "done" : "open";
    return { heldAt, text, outcome, holder, slot };
  }

  const chunks = (): AsyncIterable<string> =>
    (async function* () {
      yield "a";
      await new Promise(setImmediate);
      yield "b";
    })();
  const broken = (): AsyncIterable<string> =>
    (async function* () {
      yield "a";
      throw new Error("source");
    })();
  const us = "job/request-1";

  test.each([
    ["a Readable", () => Readable.from(chunks())],
    ["a web stream", () => Readable.toWeb(Readable.from(chunks()))],
    ["a response with a stream for its body", () => ({ statusCode: 200, body: Readable.from(chunks()) })],
  ])("%s holds the lock to its end", async (_, handler) => {
    const { heldAt, ...end } = await run(handler);
    expect(end).toEqual({ text: "ab", outcome: "ended", holder: undefined, slot: "done" });
    expect(new Set(heldAt.slice(-2))).toEqual(new Set([us]));
  });

  test.each<[string, () => unknown, StreamOptions, object]>([
    ["a text is let go with the handler", () => "text", {}, { text: "text", outcome: "ended", slot: "done" }],
    [
      "a stream that fails releases the lock and leaves the slot open",
      () => Readable.from(broken()),
      {},
      { text: "a", outcome: "source", slot: "open" },
    ],
    [
      "a caller that goes away releases the lock and leaves the slot open",
      () => Readable.from(chunks()),
      { breaks: true },
      { outcome: "gone", slot: "open" },
    ],
    [
      "a handler that fails releases the lock",
      () => {
        throw new Error("handler");
      },
      {},
      { outcome: "handler", slot: "open" },
    ],
  ])("%s", async (_, handler, options, expected) => {
    expect(await run(handler, options)).toMatchObject({ holder: undefined, ...expected });
  });

  test("a held lock is answered with skipResult", async () => {
    expect(await run(() => "ran", { whenHeld: "skip" })).toMatchObject({ text: "skipped" });
  });

  const upperCase = async function* (response: unknown): AsyncIterable<string> {
    for await (const chunk of response as AsyncIterable<string>) yield chunk.toUpperCase();
  };
  test.each<[string, NonNullable<StreamOptions["outer"]>, object]>([
    [
      "is replaced by an outer after that reads it holds the lock to its end",
      ({ response }) => Readable.from(upperCase(response)),
      { text: "AB", heldAt: [us, us], holder: undefined },
    ],
    [
      "is never read, as an outer after answers instead, keeps the lock: its producer may still run",
      () => "instead",
      { text: "instead", heldAt: [us], holder: us },
    ],
    [
      "is never read, as an outer after throws, keeps the lock as well",
      () => {
        throw new Error("outer");
      },
      { outcome: "outer", holder: us },
    ],
    [
      "an outer after destroys when it has read its beginning releases the lock",
      async ({ response }) => {
        const stream = response as Readable;
        const { value } = await stream.iterator({ destroyOnReturn: false }).next();
        stream.destroy();
        await new Promise(setImmediate);
        return value;
      },
      { text: "a", holder: undefined },
    ],
  ])("a stream that %s", async (_, outer, expected) => {
    expect(await run(() => Readable.from(chunks()), { outer })).toMatchObject(expected);
  });
});

describe.each(Object.entries(ways))("%s: a response object", (_, wrap) => {
  /** A response as frameworks have it: a class, with a part that is its own. */
  class StreamResponse {
    readonly #status = 201;
    body: AsyncIterable<unknown>;
    constructor(body: AsyncIterable<unknown>) {
      this.body = body;
    }
    get statusCode(): number {
      return this.#status;
    }
    async text(): Promise<string> {
      const chunks: unknown[] = [];
      for await (const chunk of this.body) chunks.push(chunk);
      return chunks.join("");
    }
  }

  async function answer(response: unknown) {
    const b = bench();
    const app = wrap({ ...b.options, once: () => "slot" }, () => response);
    return { ...b, answered: await app({}, b.context()) };
  }

  test("of a class with a stream keeps its class, and the lock to the stream's end", async () => {
    const { answered, holder } = await answer(new StreamResponse(Readable.from(["a", "b"])));
    expect(answered).toBeInstanceOf(StreamResponse);
    const response = answered as StreamResponse;
    expect(await holder()).toBeDefined();
    expect([response.statusCode, await response.text()]).toEqual([201, "ab"]);
    expect(await holder()).toBeUndefined();
  });

  test("that is frozen keeps its class, and the lock to the stream's end", async () => {
    class Frozen {
      readonly statusCode = 201;
      readonly body = Readable.from(["a", "b"]);
    }
    const { answered, holder } = await answer(Object.freeze(new Frozen()));
    expect(answered).toBeInstanceOf(Frozen);
    expect((answered as Frozen).statusCode).toBe(201);
    expect(await (answered as Frozen).body.toArray()).toEqual(["a", "b"]);
    expect(await holder()).toBeUndefined();
  });

  test("of the platform keeps the lock to the end of its stream, whoever reads it", async () => {
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("ab"));
        controller.close();
      },
    });
    const { answered, holder } = await answer(new Response(stream, { status: 201, headers: { "x-a": "1" } }));
    const response = answered as Response;
    expect(response).toBeInstanceOf(Response);
    expect(await holder()).toBeDefined();
    expect([response.status, response.headers.get("x-a"), await response.text()]).toEqual([201, "1", "ab"]);
    expect(await holder()).toBeUndefined();
  });

  test.each([
    ["before anybody has read it", false],
    ["while its next part is awaited", true],
  ])("whose stream is destroyed %s releases the lock, and ends its source", async (_, isBegun) => {
    const cancelled = vi.fn();
    const web = new ReadableStream({ start: (out) => out.enqueue("a"), cancel: cancelled });
    const node = new Readable({ read: () => undefined, encoding: "utf8" });
    node.push("a");
    for (const source of [node, web]) {
      const { answered, holder, clock, client } = await answer({ body: source });
      expect(await holder()).toBeDefined();
      const { body } = answered as { readonly body: Readable };
      if (isBegun) {
        const parts = body.iterator({ destroyOnReturn: false });
        expect(await parts.next()).toEqual({ done: false, value: "a" });
        // Ignored: it ends with the stream.
        void parts.next().catch(() => undefined);
        await new Promise(setImmediate);
      }
      body.destroy();
      await eventually(async () => expect(await holder()).toBeUndefined());
      expect([clock.pending, await client.doneSlot("job")]).toEqual([0, undefined]);
    }
    expect(node.destroyed).toBe(true);
    expect(cancelled).toHaveBeenCalledOnce();
  });

  const locked = new ReadableStream();
  locked.getReader();
  const unreadable = Object.defineProperty({}, "body", {
    get: () => {
      throw new Error("no body");
    },
  });
  test.each([
    ["throws", unreadable, "no body"],
    ["has a reader already", locked, /locked/],
  ])("whose body %s fails, and releases the lock", async (_, response, message) => {
    const b = bench();
    const app = wrap(b.options, () => response);
    await expect(app({}, b.context())).rejects.toThrow(message);
    expect(await b.holder()).toBeUndefined();
  });
});

test("a context that is printed shows no lock and no token", async () => {
  const b = bench();
  const context = b.context();
  const printed: string[] = [];
  const app = ways.leaseLock?.(b.options, ({ lease }) => {
    printed.push(JSON.stringify(context), inspect(context), JSON.stringify({ ...context }));
    expect(context.lock.lease).toBe(lease);
    for (const text of printed) expect(text).not.toContain(lease.token);
  });
  await app?.({}, context);
  expect(printed).toHaveLength(3);
});
