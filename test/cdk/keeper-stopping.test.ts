import { beforeEach, describe, expect, it, vi } from "vitest";
import {
  beatMs,
  failed,
  forms,
  KeptWork,
  key,
  leaseDurationMs,
  lookMs,
  stopped,
} from "../support/kept-work.ts";
import { startedBy } from "../support/step-functions.ts";

let kept: KeptWork;

beforeEach(() => {
  kept = new KeptWork();
});

const hourMs = 3_600_000;

describe("a keeper whose work cannot be stopped at once", () => {
  it("tries for an hour, while the lease of a holder that was asked to stop is renewed, and lets go only then", {
    tags: ["long"],
  }, async () => {
    const { lease, work } = await kept.guarded();
    await kept.revoke();
    kept.steps.fail("sfn:stopExecution", 100_000, "Sfn.SfnException");
    const other = kept.clientOf("other");
    for (let time = 0; time < hourMs; time += beatMs) {
      await kept.clock.advance(beatMs);
      expect(kept.token()).toBe(lease.token);
      expect(kept.expiresAt()).toBeGreaterThan(kept.clock.now());
      if (time % 60_000 === 0) expect(await other.tryAcquire(key)).toBeUndefined();
    }
    expect(kept.status(work)).toBe("RUNNING");
    kept.steps.heal();
    await kept.beats(2);
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.token()).toBeUndefined();
    await kept.clock.advance(60_000);
    expect(kept.running()).toEqual([]);
    for (const { executionArn } of kept.keepers()) {
      expect(kept.steps.machines.history(executionArn).events).toBeLessThan(25_000);
    }
  });

  it("tries for hours after a loss, with longer and longer pauses up to a minute", async () => {
    const { work, keeper } = await kept.guarded();
    await kept.breakLease();
    kept.steps.fail("sfn:stopExecution", 100_000, "Sfn.SfnException");
    await kept.clock.advance(beatMs);
    const attempts = (): number => kept.steps.calls.filter((call) => call === "sfn:stopExecution").length;
    await kept.clock.advance(60_000);
    expect(attempts()).toBeGreaterThan(5);
    const before = attempts();
    for (let minute = 0; minute < 180; minute += 1) await kept.clock.advance(60_000);
    expect(attempts() - before).toBeGreaterThanOrEqual(175);
    kept.steps.heal();
    await kept.clock.advance(61_000);
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.describe(keeper)).toMatchObject(failed("LeaseLostError"));
  });

  it("fails by name before its history is full, when it could never stop it", {
    tags: ["long"],
  }, async () => {
    const { keeper } = await kept.guarded();
    await kept.breakLease();
    kept.steps.fail("sfn:stopExecution", 100_000, "Sfn.SfnException", "no more");
    for (let minute = 0; minute < 2_000; minute += 1) await kept.clock.advance(60_000);
    expect(kept.describe(keeper)).toMatchObject(failed("WorkNotStoppedError", /no more/));
  });

  it("ends when the holder that was asked to stop lets go meanwhile, and does not stop it", async () => {
    const { lease, work, keeper } = await kept.guarded();
    await kept.revoke();
    kept.steps.fail("sfn:stopExecution", 100_000, "Sfn.SfnException");
    await kept.beats(2);
    await lease.release();
    await kept.beats(2);
    expect(kept.status(keeper)).toBe("SUCCEEDED");
    expect(kept.status(work)).toBe("RUNNING");
  });

  it("goes on stopping after the lease of a holder that was asked to stop is lost as well", async () => {
    const { work, keeper } = await kept.guarded();
    await kept.revoke();
    kept.steps.fail("sfn:stopExecution", 100_000, "Sfn.SfnException");
    await kept.beats(2);
    await kept.breakLease();
    const thief = await kept.client.acquire(key);
    await kept.beats(2);
    kept.steps.heal();
    await kept.beats(4);
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.describe(keeper)).toMatchObject(failed("LeaseLostError"));
    expect(kept.token()).toBe(thief.token);
  });

  it("stops work whose stopping answered with an error but took effect, once", async () => {
    const { work } = await kept.guarded();
    kept.steps.loseAnswers("sfn:stopExecution", 1);
    await kept.revoke();
    await kept.beats(3);
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.token()).toBeUndefined();
    expect(kept.steps.calls.filter((call) => call === "sfn:stopExecution")).toHaveLength(2);
  });
});

describe("a keeper that cannot see its work", () => {
  const looks = (): number => kept.steps.calls.filter((call) => call === "sfn:describeExecution").length;

  it.each([3_000, 180_000])(
    "because its looks are throttled, keeps a lease of %i ms for hours, looks in 16 usual times or an hour, and sees the end",
    async (duration) => {
      kept = new KeptWork("lock", { random: () => 0.999 });
      kept.deliver = () => {};
      const { lease, work, keeper } = await kept.guarded(duration);
      kept.steps.fail("sfn:describeExecution", 100_000, "Sfn.SfnException", "Rate exceeded");
      const beat = duration / 3;
      let [seen, seenAt, longest] = [looks(), 0, 0];
      for (let past = beat; past <= 400 * beat; past += beat) {
        await kept.clock.advance(beat);
        expect(kept.expiresAt()).toBeGreaterThan(kept.clock.now());
        if (looks() > seen) [seen, seenAt, longest] = [looks(), past, Math.max(longest, past - seenAt)];
      }
      const spread = Math.min(3_600_000, 80 * beat);
      expect(Math.abs(longest - spread)).toBeLessThanOrEqual(2 * beat);
      expect(kept.status(work)).toBe("RUNNING");
      expect(kept.status(keeper)).toBe("RUNNING");
      expect(kept.token()).toBe(lease.token);
      kept.steps.heal();
      kept.steps.machines.stop(work);
      await kept.clock.advance(spread + 2 * beat);
      expect(kept.token()).toBeUndefined();
      expect(kept.running()).toEqual([]);
    },
  );

  it("keepers that are refused together do not look together again", async () => {
    let drawn = 0;
    kept = new KeptWork("lock", { random: () => (++drawn % 10) / 10 });
    const { lease, work } = await kept.guarded();
    for (let more = 0; more < 5; more += 1) kept.startKeeper({ lease: lease.toJSON(), guarded: work });
    await kept.clock.advance(beatMs);
    kept.steps.fail("sfn:describeExecution", 100_000, "Sfn.SfnException", "Rate exceeded");
    let most = 0;
    await kept.clock.advance(5 * lookMs);
    for (let second = 0; second < 200; second += 1) {
      const before = looks();
      await kept.clock.advance(1_000);
      most = Math.max(most, looks() - before);
    }
    expect(most).toBeLessThanOrEqual(3);
  });

  it("because it is denied, stops the work in the end, before it lets go, and says what was denied", async () => {
    const { lease, work, keeper } = await kept.guarded();
    const before = looks();
    kept.steps.fail(
      "sfn:describeExecution",
      100_000,
      "Sfn.SfnException",
      "x is not authorized to perform it",
    );
    await kept.clock.advance(5 * lookMs);
    expect(kept.token()).toBe(lease.token);
    expect(kept.status(work)).toBe("RUNNING");
    await kept.clock.advance(80 * lookMs);
    expect(kept.describe(work)).toMatchObject(stopped());
    // One more goes before the work is stopped.
    expect(looks() - before).toBe(6 + 1);
    expect(kept.describe(keeper)).toMatchObject(
      failed("LeaseLostError", /may not see any more.*is not authorized to perform it/),
    );
    expect(kept.token()).toBeUndefined();
  });
});

describe("a keeper with a long history", { tags: ["long"] }, () => {
  /** About so many beats fill a history up to a hand-over. */
  const beatsOfOne = 1_430;

  it("hands over to a fresh execution far below 25,000 events, without a gap", async () => {
    const { lease, work, keeper: first } = await kept.guarded();
    expect(await kept.beats(3_000)).toBeGreaterThan(0);
    // The second names the first, and the third the second.
    const [, second, third, ...more] = kept.keepers();
    expect([second, third]).toMatchObject([
      { input: { [startedBy]: first } },
      { input: { [startedBy]: second?.executionArn } },
    ]);
    expect(more).toEqual([]);
    expect(kept.describe(first)).toMatchObject({ status: "SUCCEEDED", output: { handedOver: true } });
    expect(kept.running()).toHaveLength(1);
    expect(kept.steps.machines.history(first).events).toBeLessThan(15_000);
    expect(kept.token()).toBe(lease.token);
    kept.steps.machines.stop(work);
    await kept.beats(2);
    expect(kept.token()).toBeUndefined();
    expect(kept.running()).toEqual([]);
  });

  it.each<[string, (steps: KeptWork["steps"]) => void]>([
    ["the fresh execution could not prove the lease", (steps) => steps.fail("dynamodb:getItem", 4)],
    [
      "the answer to its start was lost, and that of the fresh one",
      (steps) => {
        steps.loseAnswers("sfn:startExecution.waitForTaskToken", 1);
        steps.loseAnswers("sfn:sendTaskSuccess", 1);
      },
    ],
    ["nobody has answered", (steps) => steps.hang("sfn:startExecution.waitForTaskToken", 1)],
  ])("carries on where %s, and another one keeps the lease and lets it go", async (_, happen) => {
    const { work, keeper: first } = await kept.guarded();
    await kept.beats(beatsOfOne - 20);
    happen(kept.steps);
    // It waits for an answer for a beat, which is a third of the lease, and renews before it tries again.
    let least = leaseDurationMs;
    for (let second = 0; second < 600; second += 1) {
      await kept.clock.advance(1_000);
      least = Math.min(least, kept.expiresAt() - kept.clock.now());
    }
    expect(least).toBeGreaterThanOrEqual((leaseDurationMs * 2) / 3 - 1_000);
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.status(first)).toBe("SUCCEEDED");
    kept.steps.machines.stop(work);
    await kept.beats(2);
    expect(kept.running()).toEqual([]);
    expect(kept.token()).toBeUndefined();
  });

  it("stops the work and lets go before its history is full, when it can never hand over", async () => {
    const { work, keeper } = await kept.guarded();
    kept.steps.fail("sfn:startExecution.waitForTaskToken", 100_000, "Sfn.ExecutionLimitExceededException");
    let beats = 0;
    while (kept.status(work) === "RUNNING" && beats < 4_000) {
      await kept.clock.advance(beatMs);
      if (kept.status(work) === "RUNNING") expect(kept.expiresAt()).toBeGreaterThan(kept.clock.now());
      beats += 1;
    }
    expect(kept.describe(work)).toMatchObject(stopped());
    expect(kept.describe(keeper)).toMatchObject(failed("LeaseLostError", /could take over/));
    expect(kept.token()).toBeUndefined();
    expect(kept.steps.machines.history(keeper).events).toBeLessThan(20_000);
  });

  it("counts its events well enough, also while every renewal is refused", async () => {
    const { lease, keeper } = await kept.guarded();
    const adopted = kept.client.adopt(lease.toJSON());
    for (let beat = 0; beat < 900 && kept.status(keeper) === "RUNNING"; beat += 1) {
      await kept.clock.advance(beatMs);
      await adopted.renew();
    }
    expect(kept.describe(keeper)).toMatchObject({ output: { handedOver: true } });
    const { events } = kept.steps.machines.history(keeper);
    expect(events).toBeGreaterThan(11_500);
    expect(events).toBeLessThan(12_500);
  });
});

it.each(forms)(
  "a keeper of a %s that hands over tells when the lease ends by its last renewal, so that the next one may try its first again",
  async (form) => {
    kept = new KeptWork(form);
    const lease = await kept.of().acquire();
    kept.startKeeper({ lease: lease.toJSON(), until: kept.clock.now() + 100 * hourMs });
    const start = vi.spyOn(kept.steps.machines, "start");
    let endsAt: number | undefined;
    start.mockImplementationOnce((request) => {
      const input = typeof request.input === "string" ? JSON.parse(request.input) : request.input;
      endsAt = (input as { readonly lease: { readonly expiresAt: number } }).lease.expiresAt;
      // The first renewal of the next keeper fails in passing.
      kept.steps.fail("dynamodb:updateItem", 1);
      return kept.steps.machines.start(request);
    });
    for (let beats = 0; endsAt === undefined && beats < 3_000; beats += 1) await kept.beats(1);
    expect(endsAt).toBeGreaterThan(kept.clock.now());
    expect(await kept.beats(20)).toBeGreaterThan(leaseDurationMs / 3);
    expect(kept.keepers()).toMatchObject([
      { status: "SUCCEEDED", output: { handedOver: true } },
      { status: "RUNNING" },
    ]);
    expect(kept.token()).toBe(lease.token);
  },
);
