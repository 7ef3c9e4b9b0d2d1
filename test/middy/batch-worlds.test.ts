/** Batches as queues deliver them: twice, in parts, to several environments at once, with failures and leases that end. */
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { type LeasedBatchOptions, leasedBatch } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { expect, it } from "vitest";
import { Random } from "../worlds/random.ts";

interface Message {
  readonly messageId: string;
  readonly eventSource: "aws:sqs";
  readonly eventSourceARN: string;
  readonly attributes: { readonly MessageGroupId: string };
  readonly key: string;
}

const leaseMs = 5_000;
const mostRounds = 200;

/** Plays deliveries until every message is acknowledged, and gives what was wrong. */
async function play(seed: number): Promise<string[]> {
  const random = new Random(seed);
  const isFifo = random.chance(0.5);
  const once = random.chance(0.5);
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const store = new MemoryLeaseStore();
  const wrong: string[] = [];
  const messages = Array.from(
    { length: 12 },
    (_, index): Message => ({
      messageId: `m${String(index).padStart(2, "0")}`,
      eventSource: "aws:sqs",
      eventSourceARN: `arn:aws:sqs:eu-central-1:111122223333:orders${isFifo ? ".fifo" : ""}`,
      attributes: { MessageGroupId: `g${random.integer(0, 2)}` },
      key: `k${random.integer(0, 3)}`,
    }),
  );
  const open = new Set(messages);
  const inFlight = new Set<string>();
  const acknowledged: Message[] = [];
  const worked = new Set<Message>();
  /** Works that run now, by key, with a look whether their lease is held. */
  const inside = new Map<object, { readonly key: string; readonly isHeld: () => boolean }>();
  const groupOf = ({ attributes }: Message): string => attributes.MessageGroupId;

  function environment(name: string) {
    const client = new LeaseClient({ store, clock, owner: name });
    const options: LeasedBatchOptions<Message> = {
      client,
      clock,
      key: ({ key }) => key,
      once,
      concurrency: 1 + random.integer(0, 3),
      whenHeld: random.chance(0.5) ? "throw" : "wait",
      lockAtMostForMs: leaseMs,
      heartbeat: random.chance(0.5),
      onFailure: () => undefined,
    };
    /** Of the present delivery: whether the lease was held at the end of the work. */
    const ended = new Map<Message, boolean>();
    const handler = leasedBatch<Message>(options, async (message, _context, { lease }) => {
      const { key, messageId } = message;
      if (!lease.held) wrong.push(`${messageId} begins without its lease`);
      const others = [...inside.values()].filter((other) => other.key === key && other.isHeld());
      if (others.length > 0) wrong.push(`${messageId} begins beside another holder of ${key}`);
      if (once && acknowledged.includes(message)) wrong.push(`${messageId} runs after its success`);
      const self = { key, isHeld: () => lease.held };
      inside.set(self, self);
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), random.integer(0, 3_000)));
      // Longer than its lease, whatever its signal says.
      if (random.chance(0.1))
        await new Promise((resolve) => clock.schedule(() => resolve(undefined), 2 * leaseMs));
      inside.delete(self);
      if (random.chance(0.1)) throw new Error("a failure");
      ended.set(message, lease.held);
      if (lease.held) worked.add(message);
    });
    return async (Records: readonly Message[]): Promise<void> => {
      ended.clear();
      const endAt = clock.monotonic() + 60_000;
      const context = {
        getRemainingTimeInMillis: () => endAt - clock.monotonic(),
        functionName: name,
      } as Context;
      const { batchItemFailures } = await handler({ Records }, context);
      const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      for (const message of Records) {
        if (failed.has(message.messageId)) continue;
        const isDone = ended.get(message) === true || (once && worked.has(message));
        if (!isDone) wrong.push(`${message.messageId} is acknowledged without its work`);
        acknowledged.push(message);
        open.delete(message);
      }
      for (const message of isFifo ? Records : []) {
        const first = Records.findIndex(
          (one) => groupOf(one) === groupOf(message) && failed.has(one.messageId),
        );
        if (first !== -1 && Records.indexOf(message) > first && !failed.has(message.messageId))
          wrong.push(`${message.messageId} is acknowledged behind a failure of its group`);
      }
    };
  }

  const environments = Array.from({ length: 3 }, (_, index) => environment(`env${index}`));
  for (let round = 0; open.size > 0 && round < mostRounds; round += 1) {
    const deliveries = environments.map(async (deliver) => {
      // A standard queue may deliver a message twice, or once more after its success.
      const ready = isFifo
        ? messages.filter((message) => open.has(message) && !inFlight.has(groupOf(message)))
        : messages.filter((message) => random.chance(open.has(message) ? 0.4 : 0.1));
      const batch = ready.slice(0, 1 + random.integer(0, 8));
      if (batch.length === 0) return;
      const groups = new Set(isFifo ? batch.map(groupOf) : []);
      for (const group of groups) inFlight.add(group);
      await deliver(batch);
      for (const group of groups) inFlight.delete(group);
    });
    let isOver = false;
    const over = Promise.all(deliveries).then(() => {
      isOver = true;
    });
    while (!isOver) await clock.advance(250);
    await over;
  }
  if (open.size > 0) wrong.push(`${open.size} messages are never done`);
  const watcher = new LeaseClient({ store, clock });
  await clock.advance(2 * leaseMs);
  for (const key of new Set(messages.map((message) => message.key))) {
    const left = await watcher.inspect(key);
    if (left !== undefined && left.expiresAt > clock.now()) wrong.push(`${key} is still held`);
  }
  return wrong;
}

it("in 150 worlds no two work under one key, nothing is lost or acknowledged undone, and groups keep their order", async () => {
  for (let seed = 1; seed <= 150; seed += 1) expect(await play(seed), `seed ${seed}`).toEqual([]);
});
