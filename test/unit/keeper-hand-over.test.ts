/** What a keeper hands over to the one that follows it. */
import { describe, expect, it, vi } from "vitest";
import { KeptWork, key, leaseDurationMs } from "../support/kept-work.ts";

describe("a keeper that hands over", { tags: ["long"] }, () => {
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
});
