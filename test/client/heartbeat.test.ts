/** How the renewals of many leases share timers, requests and room. When one lease is renewed is told in holding.test.ts. */

import { ManualClock } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, it } from "vitest";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import { TimedCall } from "../../packages/client/src/base/timed-call.ts";
import type { Core } from "../../packages/client/src/core/core.ts";
import { type Beating, type Keeper, keepEach } from "../../packages/client/src/core/heartbeat.ts";
import type { SendUpdate } from "../../packages/client/src/core/held-lease.ts";
import { RequestGate } from "../../packages/client/src/core/request-gate.ts";
import { setting } from "../support/recomposed.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

class ObservedClock extends ManualClock {
  /** With which options timers were set, and for how long. */
  readonly options: unknown[] = [];
  readonly delays: number[] = [];

  override schedule(callback: () => void, delayMs: number, options?: { background?: boolean }): () => void {
    this.options.push(options);
    this.delays.push(delayMs);
    return super.schedule(callback, delayMs);
  }
}

type MakeKeeper = (core: Core) => Keeper;
const sharing = together().begin as unknown as MakeKeeper;

let clock: ObservedClock;
let store: ScriptedStore;
let keeper: Keeper;

beforeEach(() => {
  clock = new ObservedClock();
  store = new ScriptedStore();
});

function begin(make: MakeKeeper, gate: Pick<RequestGate, "renew"> = new RequestGate(clock)): void {
  const randomness = { token: () => "t", fraction: () => 0 };
  keeper = make({ clock, store, randomness, gate } as unknown as Core);
}

/** A lease that is renewed for as long as nothing else is said, with so much time left at every moment. */
class Lease implements Beating {
  readonly renewedAt: number[] = [];
  readonly leaseDurationMs: number;
  renewEveryMs = Number.POSITIVE_INFINITY;
  lost: string | undefined;
  leftMs: number;
  /** What a renewal does. */
  renewal: (send?: SendUpdate) => Promise<void> = async () => undefined;
  readonly #onEnd: (() => void)[] = [];
  #stop: (() => void) | undefined;

  constructor(leftMs = 1_000_000) {
    this.leftMs = leftMs;
    this.leaseDurationMs = leftMs;
  }

  remainingMs(): number {
    return this.leftMs;
  }

  onEnd(listener: () => void): void {
    this.#onEnd.push(listener);
  }

  end(): void {
    this.lost = "released";
    for (const listener of this.#onEnd) listener();
  }

  renew(send?: SendUpdate): Promise<void> {
    this.renewedAt.push(clock.monotonic());
    return this.renewal(send);
  }

  fail(): void {
    this.end();
  }

  /** Has one more handle that asks for that interval. */
  beat(intervalMs: number): this {
    this.renewEveryMs = Math.min(this.renewEveryMs, intervalMs);
    this.#stop ??= keeper.keep(this);
    return this;
  }

  /** Has no heartbeat any more. */
  stop(): void {
    this.#stop?.();
  }
}

describe.each<[string, MakeKeeper]>([
  ["by itself", keepEach],
  ["together with others", sharing],
])("a lease that is renewed %s", (_, make) => {
  beforeEach(() => begin(make));

  it("has no timer any more once it has ended in its own renewal", async () => {
    const lease = new Lease().beat(1_000);
    lease.renewal = async () => lease.end();
    await clock.advance(1_000);
    expect([lease.renewedAt, clock.pending]).toEqual([[1_000], 0]);
  });

  it("is not sent for where a look at its time has ended it", async () => {
    const lease = new Lease().beat(1_000);
    lease.remainingMs = () => {
      lease.end();
      return 0;
    };
    await clock.advance(2_000);
    expect([lease.renewedAt, clock.pending]).toEqual([[], 0]);
  });
});

/** A gate whose room the test gives, by sending what asks for it. */
function fullGate() {
  const asked: { readonly deadline: number; readonly send: () => Promise<unknown> }[] = [];
  const renew = (deadline: number, _: unknown, send: () => Promise<unknown>): Promise<never> => {
    asked.push({ deadline, send });
    return new Promise(() => undefined);
  };
  return { asked, gate: { renew } as Pick<RequestGate, "renew"> };
}

it("each lease that is renewed by itself waits for room by its own deadline", async () => {
  const { asked, gate } = fullGate();
  begin(keepEach, gate);
  const leases = [new Lease(50_000).beat(1_000), new Lease(40_000).beat(2_000)];
  await clock.advance(2_000);
  expect(asked.map(({ deadline }) => deadline)).toEqual([51_000, 42_000]);
  for (const { send } of asked) await send();
  expect(leases.map(({ renewedAt }) => renewedAt)).toEqual([[2_000], [2_000]]);
});

describe("leases that are renewed together", () => {
  beforeEach(() => begin(sharing));

  it("have one timer, which is set anew only for one that is due sooner", async () => {
    const [late, soon] = [new Lease(), new Lease()];
    late.beat(5_000);
    new Lease().beat(5_000);
    new Lease().beat(9_000);
    expect(clock.options).toEqual([{ background: true }]);
    soon.beat(1_000);
    expect([clock.options.length, clock.pending]).toEqual([2, 1]);
    await clock.advance(1_000);
    expect([soon.renewedAt, late.renewedAt]).toEqual([[1_000], []]);
    await clock.advance(3_000);
    expect([soon.renewedAt.length, late.renewedAt]).toEqual([4, [4_000]]);
  });

  it("have it for the others when one lease ends, and have none when none is left", async () => {
    const [gone, left] = [new Lease().beat(1_000), new Lease().beat(1_100)];
    gone.end();
    await clock.advance(1_100);
    expect(left.renewedAt).toEqual([1_100]);
    left.end();
    expect(clock.pending).toBe(0);
  });

  it("set none for one that has ended", () => {
    new Lease().beat(1_000).end();
    new Lease().beat(5_000);
    expect(clock.delays).toEqual([1_000, 5_000]);
  });

  it("take along those that are due within a quarter of their interval, and no others", async () => {
    const [due, near, far] = [new Lease(), new Lease(), new Lease()];
    due.beat(3_000);
    near.beat(4_000);
    far.beat(4_001);
    await clock.advance(3_000);
    expect([due, near, far].map(({ renewedAt }) => renewedAt)).toEqual([[3_000], [3_000], []]);
  });

  it("take along no more than a request has room for", async () => {
    const due = Array.from({ length: 60 }, () => new Lease());
    for (const lease of due) lease.beat(3_000);
    const near = Array.from({ length: 60 }, () => new Lease());
    for (const lease of near) lease.beat(3_500);
    await clock.advance(3_000);
    expect(due.every(({ renewedAt }) => renewedAt.length === 1)).toBe(true);
    // Three requests of 25 each.
    expect(near.filter(({ renewedAt }) => renewedAt.length === 1)).toHaveLength(15);
    await clock.advance(500);
    expect(near.every(({ renewedAt }) => renewedAt.length === 1)).toBe(true);
  });

  it("are sent the nearest deadline first", async () => {
    const order: string[] = [];
    for (const [name, leftMs] of [
      ["late", 90_000],
      ["soon", 10_000],
      ["later", 95_000],
    ] as const) {
      const lease = new Lease(leftMs).beat(1_000);
      lease.renewal = async () => {
        order.push(name);
      };
    }
    await clock.advance(1_000);
    expect(order).toEqual(["soon", "late", "later"]);
  });
});

describe("renewals that share requests and find no room", () => {
  let asked: ReturnType<typeof fullGate>["asked"];

  beforeEach(() => {
    const full = fullGate();
    asked = full.asked;
    begin(sharing, full.gate);
  });

  it("wait as one request, by the nearest deadline, which takes along what is most urgent then", async () => {
    const [first, second, gone] = [new Lease(50_000), new Lease(40_000), new Lease(30_000)];
    for (const lease of [first, gone]) lease.beat(1_000);
    second.beat(2_000);
    await clock.advance(2_500);
    gone.end();
    expect(asked).toMatchObject([{ deadline: 31_000 }]);
    expect([first.renewedAt, second.renewedAt]).toEqual([[], []]);
    await asked[0]?.send();
    expect([first.renewedAt, second.renewedAt, gone.renewedAt]).toEqual([[2_500], [2_500], []]);
    expect(asked).toHaveLength(1);
  });

  it("need none where all of the leases have ended meanwhile", async () => {
    const lease = new Lease().beat(1_000);
    await clock.advance(1_000);
    lease.end();
    await expect(asked[0]?.send()).resolves.toBeUndefined();
    expect([store.calls, lease.renewedAt]).toEqual([[], []]);
  });

  it("ask for a write that cannot travel with the others by the nearest deadline again", async () => {
    const write = setting({ pk: "k", sk: "lease" }, { a: 1 });
    const call = new TimedCall(new ServiceClock(clock, true, () => undefined), {});
    for (const leftMs of [50_000, 40_000]) {
      const lease = new Lease(leftMs).beat(1_000);
      lease.renewal = async (send) => {
        await send?.(write, call);
      };
    }
    await clock.advance(1_000);
    void asked[0]?.send();
    await clock.advance(0);
    expect(asked.map(({ deadline }) => deadline)).toEqual([41_000, 41_000]);
    call.end();
  });
});
