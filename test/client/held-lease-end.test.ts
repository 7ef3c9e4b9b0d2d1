/** One lease's end: what it sends, what a refused release can know, and what is told of it. */
import { LeaseServiceError } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import type { UpdateResult } from "../../packages/client/src/base/store.ts";
import {
  failureOf,
  itemKey,
  type LeaseByHand,
  leaseByHand,
  leaseDurationMs,
} from "../support/lease-by-hand.ts";

let scene: LeaseByHand;

beforeEach(async () => {
  scene = await leaseByHand();
});

/** Answers the release as the service would not by itself. */
function answerRelease(result: Partial<UpdateResult>): void {
  scene.store.update = async () => ({ applied: false, item: undefined, retried: false, ...result });
}

const types = (): string[] => scene.events.map(({ type }) => type);

describe("the end of a lease", () => {
  it("is told to who listens, and the client holds it no more", async () => {
    const lease = scene.held();
    lease.list();
    const heard: string[] = [];
    for (const name of ["first", "second"]) lease.onEnd(() => heard.push(name));
    expect([heard, scene.core.lifecycle.held]).toEqual([[], [lease]]);
    await lease.release(false);
    expect([heard, scene.core.lifecycle.held]).toEqual([["first", "second"], []]);
    expect(lease.lost).toBe("released");
    expect(scene.events).toMatchObject([{ type: "released", confirmed: true }]);
  });

  it("lets waiters of this process try only where the service has let the lock go", async () => {
    const freed: unknown[] = [];
    for (const how of ["refused", "confirmed"]) {
      const lease = scene.held();
      Object.assign(lease.form, { released: () => freed.push(how) });
      const { update } = scene.store;
      if (how === "refused") answerRelease({ item: { ...itemKey, releasedToken: "other" } });
      await lease.release(false);
      scene.store.update = update;
    }
    expect(freed).toEqual(["confirmed"]);
  });

  it("is told at once to who listens when it is over", async () => {
    const lease = scene.held();
    await lease.release(false);
    let heard = 0;
    lease.onEnd(() => {
      heard += 1;
    });
    expect(heard).toBe(1);
  });

  it.each([
    [true, "2026", { wasOurs: true, isRecorded: true }],
    [false, "2026", { wasOurs: true, isRecorded: false }],
    [true, undefined, { wasOurs: true, isRecorded: false }],
  ])("records its slot where it was completed (%s) and has one (%s)", async (completed, slot, ended) => {
    expect(await scene.held({ slot }).release(completed)).toEqual(ended);
    expect(scene.store.table.peek(itemKey)?.doneSlot).toBe(ended.isRecorded ? "2026" : undefined);
  });

  it.each([
    ["2026", true],
    ["2027", true],
    ["2025", false],
    [undefined, false],
  ])(
    "has recorded its slot where an earlier copy has landed, and the item says %s",
    async (done, isRecorded) => {
      const item = {
        ...itemKey,
        releasedToken: scene.record.token,
        ...(done === undefined ? {} : { doneSlot: done }),
      };
      answerRelease({ item });
      expect(await scene.held({ slot: "2026" }).release(true)).toEqual({ wasOurs: true, isRecorded });
    },
  );

  it("comes with the last of its handles, completed where one of them was", async () => {
    const lease = scene.held({ slot: "2026" });
    lease.retain();
    lease.retain();
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: false });
    expect(await lease.release(true)).toEqual({ wasOurs: true, isRecorded: true });
    expect(scene.store.calls).toEqual([]);
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: true });
    expect(scene.store.calls).toHaveLength(1);
  });

  it.each([
    ["taken", false],
    ["revoked", true],
  ] as const)("of one of its handles counts for %s: %s", async (reason, wasOurs) => {
    const lease = scene.held();
    lease.retain();
    lease.over(reason);
    expect(await lease.release(true)).toEqual({ wasOurs, isRecorded: wasOurs });
  });

  it("comes for all of its handles when it is let go, completed by none", async () => {
    const lease = scene.held({ slot: "2026" });
    lease.retain();
    lease.letGo();
    await settled();
    expect([scene.store.calls.length, scene.store.table.peek(itemKey)?.doneSlot]).toEqual([1, undefined]);
  });

  it("is sent once for all who ask at the same time, and again after it failed", async () => {
    const lease = scene.held();
    scene.store.next("throttled");
    const failures = await Promise.all([lease.release(false), lease.release(false)].map(failureOf));
    expect(failures).toMatchObject([{ code: "LEASE_THROTTLED" }, { code: "LEASE_THROTTLED" }]);
    expect(scene.store.calls).toHaveLength(1);
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: false });
    expect(types()).toEqual(["released", "released"]);
  });

  it("is sent in its caller's own turn", () => {
    void scene.held().release(false);
    expect(scene.store.calls).toHaveLength(1);
  });

  it("is waited for when the client is closed", async () => {
    const write = Promise.withResolvers<UpdateResult>();
    scene.store.update = () => write.promise;
    const ending = scene.held().release(false);
    let isClosed = false;
    const closing = scene.core.lifecycle.close(5_000).then(() => {
      isClosed = true;
    });
    await settled();
    expect(isClosed).toBe(false);
    write.resolve({ applied: true, item: undefined, retried: false });
    await Promise.all([ending, closing]);
  });

  it("that meets a mistake in the program is told, beside that it is not confirmed", async () => {
    const mistake = new TypeError("no such thing");
    scene.store.update = () => Promise.reject(mistake);
    await expect(scene.held().release(false)).rejects.toBe(mistake);
    expect(scene.events).toMatchObject([
      { type: "released", confirmed: false },
      { type: "error", operation: "release", error: mistake },
    ]);
  });

  it("is not sent where the process froze while it was written", async () => {
    const isCurrent: boolean[] = [];
    scene.store.update = async (_, call) => {
      isCurrent.push(call.isCurrent());
      return { applied: true, item: undefined, retried: false };
    };
    const lease = scene.held();
    const write = lease.form.release.bind(lease.form);
    lease.form.release = (ending) => {
      scene.clock.freeze(60_000);
      return write(ending);
    };
    await lease.release(false);
    expect(isCurrent).toEqual([false]);
  });
});

describe("a cooldown", () => {
  const cooldown = () => {
    const { token, expiresAt, leaseDurationMs: forMs } = scene.store.table.peek(itemKey) ?? {};
    return token === undefined ? undefined : { until: Number(expiresAt) - scene.clock.now(), forMs };
  };

  it("lasts for what is left of it by the monotonic clock, where this process has acquired the lock", async () => {
    scene.clock.freeze(2_500);
    scene.clock.jump(60_000);
    await scene.held({ heldSince: 500, cooldownUntil: scene.record.acquiredAt + 9_000 }).release(false);
    expect(cooldown()).toEqual({ until: 7_000, forMs: 7_000 });
  });

  it("lasts for what is left of it by the wall clock, where another has", async () => {
    scene.clock.jump(2_000);
    await scene.adopted({ cooldownUntil: scene.record.acquiredAt + 9_000 }).release(false);
    expect(cooldown()).toEqual({ until: 7_000, forMs: 7_000 });
  });

  it("lasts for all of its time where another's wall clock was ahead", async () => {
    scene.clock.jump(-60_000);
    await scene.adopted({ cooldownUntil: scene.record.acquiredAt + 9_000 }).release(false);
    expect(cooldown()).toEqual({ until: 9_000, forMs: 9_000 });
  });

  it.each([
    ["is over", 9_000],
    ["was never asked for", undefined],
  ])("is none where it %s", async (_, ms) => {
    scene.clock.freeze(9_000);
    await scene
      .held({ cooldownUntil: ms === undefined ? undefined : scene.record.acquiredAt + ms })
      .release(false);
    expect(cooldown()).toBeUndefined();
  });
});

describe("a release that finds the lease gone", () => {
  const unknown = { code: "LEASE_NO_ANSWER", message: expect.stringContaining("not known") };
  it("was not ours to end, where its only request was refused", async () => {
    answerRelease({ item: { ...itemKey, releasedToken: "other" } });
    expect(await scene.held().release(true)).toEqual({ wasOurs: false, isRecorded: false });
    expect(scene.events).toMatchObject([{ type: "released", confirmed: false }]);
  });

  it("does not know whether an earlier copy had landed, where the request was repeated", async () => {
    answerRelease({ retried: true });
    expect(await failureOf(scene.held().release(true))).toMatchObject(unknown);
  });

  it.each([
    ["shows it all the same", () => scene.store.table.peek(itemKey)],
    ["says that an operator has broken it", () => ({ ...itemKey, brokenToken: scene.record.token })],
  ])("was not ours to end where the item %s", async (_, item) => {
    answerRelease({ retried: true, item: item() });
    expect(await scene.held().release(true)).toEqual({ wasOurs: false, isRecorded: false });
  });

  it.each([
    ["LEASE_NO_ANSWER", true],
    ["LEASE_THROTTLED", false],
  ] as const)("may have landed after a first try that ended with %s: %s", async (code, mayHaveLanded) => {
    const lease = scene.held();
    scene.store.update = () => Promise.reject(new LeaseServiceError(code, "no"));
    await failureOf(lease.release(false));
    answerRelease({ item: { ...itemKey, releasedToken: "other" } });
    const error = await failureOf(lease.release(false));
    if (mayHaveLanded) expect(error).toMatchObject(unknown);
    else expect(error).toBeUndefined();
  });

  it("cannot have landed after a first try that met a mistake in the program", async () => {
    const lease = scene.held();
    scene.store.update = () => Promise.reject(new TypeError("no such thing"));
    await failureOf(lease.release(false));
    answerRelease({ item: { ...itemKey, releasedToken: "other" } });
    expect(await lease.release(false)).toEqual({ wasOurs: false, isRecorded: false });
  });

  describe("of a seat", () => {
    beforeEach(async () => {
      scene = await leaseByHand({ isShared: true });
    });

    it("had landed before, where nobody else could have taken the seat yet", async () => {
      answerRelease({ retried: true });
      expect(await scene.held().release(false)).toEqual({ wasOurs: true, isRecorded: false });
      expect(scene.events).toMatchObject([{ type: "released", confirmed: true }]);
    });

    it.each([
      [
        "a process of the same owner could have taken it",
        () => scene.held({ record: { ...scene.record, reentrant: true } }),
      ],
      [
        "its time was over before",
        () => {
          const lease = scene.held();
          lease.over("taken");
          return lease;
        },
      ],
    ])("is not known to have landed where %s", async (_, make) => {
      answerRelease({ retried: true });
      expect(await failureOf(make().release(false))).toMatchObject(unknown);
    });

    it("is not known to have landed where its time was over when the answer came", async () => {
      const lease = scene.held();
      scene.store.update = async () => {
        scene.clock.freeze(leaseDurationMs);
        return { applied: false, item: undefined, retried: true };
      };
      expect(await failureOf(lease.release(false))).toMatchObject(unknown);
    });

    it("goes by the time that was left when its first try began", async () => {
      const lease = scene.held();
      scene.store.update = () => Promise.reject(new LeaseServiceError("LEASE_NO_ANSWER", "lost"));
      await failureOf(lease.release(false));
      answerRelease({});
      scene.clock.freeze(leaseDurationMs - 1);
      expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: false });
    });
  });
});
