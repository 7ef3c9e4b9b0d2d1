/** What a client has under way is known, ended and waited for, and nothing else is. */
import { ClientClosedError } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import {
  type Held,
  Lifecycle,
  pauseWhileOpen,
  type Removal,
  sleepWhileOpen,
  whileOpen,
} from "../../packages/client/src/core/lifecycle.ts";

let clock: ManualClock;
let lifecycle: Lifecycle;

beforeEach(() => {
  clock = new ManualClock();
  lifecycle = new Lifecycle(clock);
});

/** A lease that notes how often it is let go. */
class Lease {
  lettingGo = 0;
  lost: string | undefined;

  letGo(): void {
    this.lettingGo += 1;
  }
}

const lease = () => new Lease() as Lease & Held;
const removal = (key = "k"): Removal => ({ key, sortKey: "lease", expiresAt: 1_000 });
const leftOf = (close: Promise<void>): Promise<unknown> =>
  close.then(
    () => "closed",
    (error: unknown) => error,
  );

describe("leases that are held", () => {
  it("are listed once each in the order of acquisition until they end", () => {
    const [first, second] = [lease(), lease()];
    for (const one of [first, second, first]) lifecycle.hold(one);
    expect(lifecycle.held).toEqual([first, second]);
    lifecycle.forget(first);
    expect(lifecycle.held).toEqual([second]);
  });

  it("are not listed where they had ended before", () => {
    const gone = lease();
    gone.lost = "expired";
    lifecycle.hold(gone);
    expect(lifecycle.held).toEqual([]);
  });

  it("are let go once by closing, and at once where they are won afterwards", async () => {
    const [held, late] = [lease(), lease()];
    lifecycle.hold(held);
    await lifecycle.close(1_000);
    expect(held.lettingGo).toBe(1);
    lifecycle.hold(late);
    expect([lifecycle.held, late.lettingGo]).toEqual([[held, late], 1]);
    await lifecycle.close(1_000);
    expect([held.lettingGo, late.lettingGo]).toEqual([1, 1]);
  });
});

describe("calls under way", () => {
  it("are called off by closing, and refused afterwards", async () => {
    const reasons: unknown[] = [];
    const leave = lifecycle.enter((reason) => {
      reasons.push(reason);
      leave();
    });
    lifecycle.enter((reason) => reasons.push(reason))();
    await lifecycle.close(1_000);
    expect(reasons).toEqual([expect.any(ClientClosedError)]);
    expect(() => lifecycle.enter(() => undefined)).toThrow(ClientClosedError);
    expect(() => lifecycle.begin(undefined)).toThrow(ClientClosedError);
    expect(() => lifecycle.throwIfClosed()).toThrow(ClientClosedError);
  });

  it("are refused from within what closing ends, such as a listener of a signal", async () => {
    const leave = lifecycle.enter(() => {
      expect(() => lifecycle.begin(undefined)).toThrow(ClientClosedError);
      leave();
    });
    await lifecycle.close(1_000);
    expect.assertions(1);
  });

  it("abort with their caller's reason, and not once they have ended", () => {
    const caller = new AbortController();
    const [open, over] = [lifecycle.begin(caller.signal), lifecycle.begin(caller.signal)];
    over.end();
    const reason = new Error("enough");
    caller.abort(reason);
    expect([open.signal.reason, over.signal.aborted]).toEqual([reason, false]);
    expect(() => lifecycle.begin(caller.signal)).toThrow(reason);
  });

  it("are none where the caller's signal has aborted before: closing waits for nothing", async () => {
    expect(() => lifecycle.begin(AbortSignal.abort(new Error("enough")))).toThrow("enough");
    const closing = leftOf(lifecycle.close(500));
    await clock.advance(500);
    expect(await closing).toBe("closed");
  });

  it("are waited for, no longer than the timeout, and are counted then", async () => {
    const open = lifecycle.begin(undefined);
    const closing = leftOf(lifecycle.close(500));
    expect(open.signal.reason).toBeInstanceOf(ClientClosedError);
    await clock.advance(499);
    const again = leftOf(lifecycle.close(500));
    await clock.advance(1);
    expect(await closing).toMatchObject({ code: "LEASE_CLOSE_INCOMPLETE", left: [], callsUnderWay: 1 });
    open.end();
    expect(await again).toBe("closed");
    expect(clock.pending).toBe(0);
    expect(await leftOf(lifecycle.close(500))).toBe("closed");
  });

  it("end with what they did, however that went, and reject where the client was closed meanwhile", async () => {
    expect(await whileOpen(lifecycle, undefined, async () => 7)).toBe(7);
    const mistake = new Error("no");
    await expect(whileOpen(lifecycle, undefined, () => Promise.reject(mistake))).rejects.toBe(mistake);
    const slow = Promise.withResolvers<number>();
    const outcome = leftOf(whileOpen(lifecycle, undefined, () => slow.promise).then(() => undefined));
    const closing = leftOf(lifecycle.close(1_000));
    slow.resolve(8);
    expect(await outcome).toBeInstanceOf(ClientClosedError);
    expect(await closing).toBe("closed");
  });

  it("that sleep reject when the client is closed; one that pauses ends quietly where its own signal aborts", async () => {
    const context = { clock: new ServiceClock(clock, true, () => undefined), lifecycle };
    const caller = new AbortController();
    const sleeping = leftOf(sleepWhileOpen(context, 1_000, caller.signal));
    const pausing = leftOf(pauseWhileOpen(context, 1_000, caller.signal));
    const other = leftOf(pauseWhileOpen(context, 1_000, undefined));
    const reason = new Error("enough");
    caller.abort(reason);
    expect([await sleeping, await pausing]).toEqual([reason, "closed"]);
    expect(await leftOf(pauseWhileOpen(context, 1_000, caller.signal))).toBe("closed");
    await lifecycle.close(1_000);
    expect(await other).toBeInstanceOf(ClientClosedError);
    expect(clock.pending).toBe(0);
  });
});

describe("writes in the background", () => {
  it("are waited for by closing, and left where the service does not answer in time", async () => {
    const write = Promise.withResolvers<void>();
    lifecycle.follow(removal("a"), write.promise);
    const closing = leftOf(lifecycle.close(500));
    await clock.advance(500);
    expect(await closing).toMatchObject({
      left: [{ key: "a", sortKey: "lease", expiresAt: 1_000, error: undefined }],
      callsUnderWay: 0,
    });
    write.resolve();
    await settled();
    expect(await leftOf(lifecycle.close(500))).toBe("closed");
  });

  it("end the wait as soon as the last of them has settled", async () => {
    const writes = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    for (const write of writes) lifecycle.follow(removal(), write.promise);
    let isClosed = false;
    const closing = lifecycle.close(500).then(() => {
      isClosed = true;
    });
    writes[0]?.resolve();
    await settled();
    expect(isClosed).toBe(false);
    writes[1]?.resolve();
    await closing;
    expect(clock.pending).toBe(0);
  });

  it("that fail while the client closes are left with their error, until another one of them succeeds", async () => {
    const [mistake, lost] = [new Error("no"), removal("a")];
    const write = Promise.withResolvers<void>();
    lifecycle.follow(lost, write.promise);
    const closing = leftOf(lifecycle.close(500));
    write.reject(mistake);
    expect(await closing).toMatchObject({ left: [{ key: "a", error: mistake }], cause: mistake });
    lifecycle.follow(lost, Promise.resolve());
    await settled();
    expect(await leftOf(lifecycle.close(500))).toBe("closed");
  });

  it("that have failed before the client closes were their caller's to repeat", async () => {
    lifecycle.follow(removal(), Promise.reject(new Error("no")));
    await settled();
    expect(await leftOf(lifecycle.close(500))).toBe("closed");
  });

  it("that nobody waits for tell of their failure", async () => {
    const [failures, mistake] = [[] as unknown[], new Error("no")];
    lifecycle.remove(removal(), Promise.resolve(), (error) => failures.push(error));
    lifecycle.remove(removal(), Promise.reject(mistake), (error) => failures.push(error));
    const closing = leftOf(lifecycle.close(500));
    expect(await closing).toMatchObject({ left: [{ error: mistake }] });
    expect(failures).toEqual([mistake]);
  });
});
