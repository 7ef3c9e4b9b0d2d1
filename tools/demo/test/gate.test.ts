import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Gate, type GateRequest } from "../gate.ts";

let behind: Server;
let gate: Gate;
/** What has come through. */
let arrived: string[];

beforeEach(async () => {
  arrived = [];
  behind = createServer(async (incoming, response) => {
    let text = "";
    for await (const chunk of incoming) text += chunk;
    arrived.push(text);
    const isRefused = text.includes("refused");
    response.writeHead(isRefused ? 400 : 200).end("an answer");
  });
  await new Promise<void>((resolve) => behind.listen(0, "127.0.0.1", resolve));
  const { port } = behind.address() as AddressInfo;
  gate = await Gate.open({ clientConfig: { endpoint: `http://127.0.0.1:${port}` } });
});
afterEach(async () => {
  await gate[Symbol.asyncDispose]();
  behind.closeAllConnections();
  behind.close();
});

/** Sends a request through the gate; its end loses the connection, as the death of its process does. */
function send(
  body: unknown,
  operation = "PutItem",
  id?: string,
): { answer: Promise<number | undefined>; die: () => void } {
  const headers = {
    "x-amz-target": `DynamoDB.${operation}`,
    ...(id !== undefined && { "amz-sdk-invocation-id": id }),
  };
  const outgoing = request(gate.url, { method: "POST", headers });
  outgoing.on("error", () => undefined);
  outgoing.end(JSON.stringify(body));
  const answer = once(outgoing, "response").then(([response]: IncomingMessage[]) => {
    response?.resume();
    return response?.statusCode;
  });
  answer.catch(() => undefined);
  return { answer, die: () => outgoing.destroy() };
}

const isHeld = ({ operation }: GateRequest): true | undefined => operation === "UpdateItem" || undefined;

describe("the gate before DynamoDB", () => {
  it("holds one request, lets the others pass, and shows each to those who watch, once, however often it is sent", async () => {
    const seen: unknown[] = [];
    gate.watch(({ body }) => seen.push(body));
    const holding = gate.hold(isHeld);
    const held = send({ b: 1 }, "UpdateItem");
    const { request: shown, letThrough } = await holding;
    expect(await send({ a: 1 }, "PutItem", "one").answer).toBe(200);
    expect(await send({ a: 1 }, "PutItem", "one").answer).toBe(200);
    expect(await send({ b: 2 }, "UpdateItem").answer).toBe(200);
    expect(arrived).toEqual(['{"a":1}', '{"a":1}', '{"b":2}']);
    expect(shown).toEqual({ operation: "UpdateItem", body: { b: 1 } });
    expect(await letThrough()).toBe(true);
    expect(await held.answer).toBe(200);
    expect(arrived.at(-1)).toBe('{"b":1}');
    expect(seen).toEqual([{ b: 1 }, { a: 1 }, { b: 2 }]);
  });

  it.each([
    ["says that it was done", { b: 1 }, true],
    ["says that it was refused", { b: "refused" }, false],
  ])("lets a dead sender's request through, and %s", async (_, body, isDone) => {
    const holding = gate.hold(isHeld);
    const held = send(body, "UpdateItem");
    const { letThrough } = await holding;
    held.die();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await letThrough()).toBe(isDone);
    expect(arrived).toEqual([JSON.stringify(body)]);
  });

  it("holds what the sender of a held request sends again, and lets it through after the first", async () => {
    const holding = gate.hold(isHeld);
    const first = send({ b: 1 }, "UpdateItem", "one");
    const { letThrough } = await holding;
    first.die();
    const again = send({ b: 1 }, "UpdateItem", "one");
    expect(await send({ c: 1 }, "UpdateItem", "two").answer).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(arrived).toEqual(['{"c":1}']);
    expect(await letThrough()).toBe(true);
    expect(await again.answer).toBe(200);
    expect(arrived).toEqual(['{"c":1}', '{"b":1}', '{"b":1}']);
  });

  it("loses a request, and what its sender sends again, before or after: nothing of it arrives", async () => {
    const holding = gate.hold(isHeld);
    const first = send({ b: 1 }, "UpdateItem", "one");
    const { lose } = await holding;
    const before = send({ b: 1 }, "UpdateItem", "one");
    lose();
    await expect(first.answer).rejects.toThrow();
    await expect(before.answer).rejects.toThrow();
    await expect(send({ b: 1 }, "UpdateItem", "one").answer).rejects.toThrow();
    expect(arrived).toEqual([]);
  });
});
