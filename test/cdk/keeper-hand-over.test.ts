/** What a keeper hands over to the one that follows it. */
import { describe, expect, it, vi } from "vitest";
import { KeptWork, key, leaseDurationMs } from "../support/kept-work.ts";

describe("a keeper that hands over", () => {
  it("tells when the lease ends by its last renewal, so that the next one may try its first again", async () => {
    const kept = new KeptWork();
    const lease = await kept.client.acquire(key);
    kept.startKeeper({ lease: lease.toJSON(), until: kept.clock.now() + 100 * 3_600_000 });
    const start = vi.spyOn(kept.steps.machines, "start");
    let handedOn: { readonly lease: { readonly expiresAt: number } } | undefined;
    start.mockImplementationOnce((request) => {
      handedOn = (
        typeof request.input === "string" ? JSON.parse(request.input) : request.input
      ) as typeof handedOn;
      // The first renewal of the next keeper fails in passing.
      kept.steps.fail("dynamodb:updateItem", 1);
      return kept.steps.machines.start(request);
    });
    for (let beats = 0; handedOn === undefined && beats < 3_000; beats += 1) await kept.beats(1);
    expect(handedOn?.lease.expiresAt).toBeGreaterThan(kept.clock.now());
    expect(await kept.beats(20)).toBeGreaterThan(leaseDurationMs / 3);
    expect(kept.keepers().map(({ status }) => status)).toEqual(["SUCCEEDED", "RUNNING"]);
    expect(kept.token()).toBe(lease.token);
  });

  it("renews at once when nobody has answered, before it tries to hand over again", async () => {
    const kept = new KeptWork();
    const { lease, work } = await kept.guarded();
    kept.steps.hang("sfn:startExecution.waitForTaskToken", 1);
    // Its history is long enough for a hand-over soon after.
    await kept.beats(1_400);
    let least = leaseDurationMs;
    for (let second = 0; kept.keepers().length < 2 && second < 600; second += 1) {
      await kept.clock.advance(1_000);
      least = Math.min(least, kept.expiresAt() - kept.clock.now());
    }
    expect(kept.keepers()).toHaveLength(2);
    // It waits for a beat, which is a third of the lease.
    expect(least).toBeGreaterThanOrEqual((leaseDurationMs * 2) / 3 - 1_000);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.token()).toBe(lease.token);
  });
});

it("the end of an execution that Step Functions has forgotten by now lets its lock go", async () => {
  const kept = new KeptWork();
  const gone = "arn:aws:states:us-east-1:123456789012:execution:work:long-ago";
  await kept.client.acquire(key, { owner: `workflow:${gone}` });
  const ended = kept.tellEnded({ key, detail: { executionArn: gone, status: "ABORTED" } });
  await kept.clock.advance(10_000);
  expect(kept.token()).toBeUndefined();
  expect(kept.status(ended)).toBe("SUCCEEDED");
});
