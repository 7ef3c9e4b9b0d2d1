import { afterEach, describe, expect, it, vi } from "vitest";
import type { Moment } from "../../packages/client/src/base/clock.ts";
import type { LeaseRecord } from "../../packages/client/src/base/lease-record.ts";
import type * as ServiceClockModule from "../../packages/client/src/base/service-clock.ts";
import type { ExpiryCheck, ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import type { Belief } from "../../packages/client/src/core/deadline.ts";
import type * as JudgeModule from "../../packages/client/src/core/expiry-detector.ts";
import type * as LeaseFormModule from "../../packages/client/src/core/form.ts";
import type { Ended } from "../../packages/client/src/core/form.ts";
import type * as HeldLeaseModule from "../../packages/client/src/core/held-lease.ts";
import type * as Statements from "../../packages/client/src/statements/lock.ts";
import { release } from "../../packages/client/src/statements/lock.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { insistingOn, leaving } from "../support/recomposed.ts";
import { lock } from "./primitives/lock.ts";
import { present, type Release } from "./release.ts";
import { tellViolation } from "./report.ts";
import { type Outcome, simulate } from "./simulation.ts";

const source = "../../packages/client/src";
/** A mistake that takes more worlds than this to show itself would slip through the tests. */
const mostSeeds = 1_500;

/** Loads a copy of the client in which one module has a mistake. */
async function plant<Module extends object>(
  path: string,
  mistake: (original: Module) => Partial<Module>,
): Promise<Release> {
  vi.resetModules();
  vi.doMock(path, async (importOriginal) => {
    const original = await importOriginal<Module>();
    return { ...original, ...mistake(original) };
  });
  return { ...present, ...(await import("@leasehold/client")), ...(await import("@leasehold/client/admin")) };
}

const plantInStatements = (mistake: (original: typeof Statements) => Partial<typeof Statements>) =>
  plant<typeof Statements>(`${source}/statements/lock.ts`, mistake);

async function firstViolation(subject: Release, ...others: readonly Release[]): Promise<Outcome> {
  for (let seed = 1; seed <= mostSeeds; seed += 1) {
    const outcome = await simulate(lock, seed, {}, { releases: [subject, ...others] });
    if (outcome.violation !== undefined) return outcome;
  }
  throw new Error(`no violation in ${mostSeeds} seeds`);
}

afterEach(() => {
  for (const path of [
    "statements/lock.ts",
    "core/form.ts",
    "core/expiry-detector.ts",
    "core/held-lease.ts",
    "base/service-clock.ts",
  ]) {
    vi.doUnmock(`${source}/${path}`);
  }
});

describe("the simulation catches", { tags: ["long"] }, () => {
  it("a release that does not insist on its token", async () => {
    const subject = await plantInStatements((original) => ({
      release: (lease, ending) => insistingOn(original.release(lease, ending), "attribute_exists(#token)"),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/a stale write of .* changed/);
  });

  it("a release beside that of now which does not count its renewals", async () => {
    const earlier = await plantInStatements((original) => ({
      renew: (lease, renewal) => leaving(original.renew(lease, renewal), "#version"),
    }));
    const { violation, tally } = await firstViolation(earlier, present);
    expect(violation).toMatch(/is held by .* and by|is stuck past its lease/);
    expect(tally["rolled forward"] ?? tally["rolled back"]).toBeGreaterThan(0);
  });

  it("an expiry that is judged without the allowance for skew", async () => {
    const subject = await plant<typeof JudgeModule>(
      `${source}/core/expiry-detector.ts`,
      ({ ExpiryDetector }) => ({
        ExpiryDetector: class extends ExpiryDetector {
          constructor(clock: ServiceClock, clockSkewMs: number) {
            const hasty = {
              monotonic: () => clock.monotonic(),
              earliest: () => (clock.latest() ?? 0) + clockSkewMs,
            };
            super(hasty as ServiceClock, clockSkewMs);
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("an expiry of its writer's own clock that is judged by the service's", async () => {
    const subject = await plant<typeof JudgeModule>(
      `${source}/core/expiry-detector.ts`,
      ({ ExpiryDetector }) => ({
        ExpiryDetector: class extends ExpiryDetector {
          override judge(record: LeaseRecord): JudgeModule.Expiry {
            return super.judge({ ...record, ownClock: false });
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a holder that no answer has told the time, and that believes in its expiry", async () => {
    const subject = await plant<typeof ServiceClockModule>(
      `${source}/base/service-clock.ts`,
      ({ ServiceClock }) => ({
        ServiceClock: class extends ServiceClock {
          override get isUntold(): boolean {
            return false;
          }

          override checkExpiry(expiresAt: number, since: Moment, leaseDurationMs: number): ExpiryCheck {
            return super.checkExpiry(expiresAt, since, leaseDurationMs, !this.isTold);
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a taker that believes the latest of two answers that contradict each other", async () => {
    const subject = await plant<typeof ServiceClockModule>(
      `${source}/base/service-clock.ts`,
      ({ ServiceClock }) => ({
        ServiceClock: class extends ServiceClock {
          #newest: number | undefined;
          override note(...noted: Parameters<ServiceClock["note"]>): void {
            super.note(...noted);
            if (noted[0] !== undefined) this.#newest = noted[0].earliest - this.monotonic();
          }

          override earliest(): number | undefined {
            return this.#newest === undefined ? undefined : this.#newest + this.monotonic();
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a fencing token that is lost when the item goes", async () => {
    const forgetful = (write: Write): Write => {
      write.values[":fromFence"] = 1;
      return write;
    };
    const subject = await plantInStatements((original) => ({
      take: (...asked) => forgetful(original.take(...asked)),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/the fencing token of .* went from|a stale fenced write/);
  });

  it("an own write that is taken for contention", async () => {
    const subject = await plant<typeof LeaseFormModule>(`${source}/core/form.ts`, (original) => ({
      leaseOf: (...asked) => {
        const lease = original.leaseOf(...asked);
        return lease && { ...lease, owner: "somebody else" };
      },
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by its own acquisition/);
  });

  it("a heartbeat that goes on after the release", async () => {
    const subject = await plant<typeof HeldLeaseModule>(`${source}/core/held-lease.ts`, ({ HeldLease }) => ({
      HeldLease: class extends HeldLease {
        override async release(): Promise<Ended> {
          const { key, token, fencingToken } = this.record;
          const { clock, times } = this.core;
          const ending = {
            shown: { token, fencingToken },
            now: clock.now(),
            retentionMs: times.retentionMs,
            slot: undefined,
            cooldown: undefined,
          };
          const { applied } = await this.core.update(release({ key }, ending));
          return { wasOurs: applied, isRecorded: false };
        }
      },
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/sent a renewal of .* after it had begun to release/);
  });

  it("a takeover that does not insist on the record that was judged", async () => {
    const subject = await plantInStatements((original) => ({
      take: (lease, grant, judged) =>
        judged === undefined
          ? original.acquire(lease, grant)
          : insistingOn(original.takeOver(lease, grant, judged), "attribute_exists(#token)"),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a slot that is not looked at before a grant", async () => {
    const subject = await plantInStatements((original) => ({
      take: (lease, grant, judged) => original.take(lease, { ...grant, slot: undefined }, judged),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/was granted the slot/);
  });

  it("a renewal that may shorten a newer one", async () => {
    const subject = await plantInStatements((original) => ({
      renew: (lease, renewal) => insistingOn(original.renew(lease, renewal), "#token = :ifToken"),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("an expiry that is judged by the caller's wall clock", async () => {
    const subject = await plant<typeof ServiceClockModule>(
      `${source}/base/service-clock.ts`,
      ({ ServiceClock }) => ({
        ServiceClock: class extends ServiceClock {
          override earliest(): number | undefined {
            return super.earliest() === undefined ? undefined : this.moment().wall;
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a holder that believes in an expiry of its own wall clock", async () => {
    const subject = await plant<typeof ServiceClockModule>(
      `${source}/base/service-clock.ts`,
      ({ ServiceClock }) => ({
        ServiceClock: class extends ServiceClock {
          override checkExpiry(_expiresAt: number, _since: Moment, leaseDurationMs: number): ExpiryCheck {
            return { believedMs: leaseDurationMs, isSound: true };
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("an upper bound of the service's time that outlives a suspension", async () => {
    const subject = await plant<typeof ServiceClockModule>(
      `${source}/base/service-clock.ts`,
      ({ ServiceClock }) => ({
        ServiceClock: class extends ServiceClock {
          #ahead: number | undefined;

          override moment(): Moment {
            const { monotonic, wall } = super.moment();
            this.#ahead ??= wall - monotonic;
            return { monotonic, wall: monotonic + this.#ahead, uptime: undefined };
          }
        },
      }),
    );
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a deadline that counts from the answer", async () => {
    const subject = await plant<typeof HeldLeaseModule>(`${source}/core/held-lease.ts`, ({ HeldLease }) => ({
      HeldLease: class extends HeldLease {
        override confirm({ forMs }: Belief, expiresAt: number): void {
          super.confirm({ since: this.core.clock.moment(), forMs }, expiresAt);
        }
      },
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });
});

describe("a violation", () => {
  it("is told with its seed, the way to replay it and what led to it, and replays exactly", async () => {
    const plantRelease = () =>
      plantInStatements((original) => ({
        release: (lease, ending) => insistingOn(original.release(lease, ending), "attribute_exists(#token)"),
      }));
    const first = await firstViolation(await plantRelease());
    const again = await simulate(lock, first.seed, {}, { releases: [await plantRelease()] });
    expect(again.timeline).toEqual(first.timeline);
    expect(again.violation).toBe(first.violation);

    const story = tellViolation(first);
    expect(story).toContain(`npm run evidence -- worlds --primitive lock --seed ${first.seed}`);
    expect(story).toContain(first.violation);
    expect(story).toMatch(/\d+\.\d{3} s {2}p\d/);
  });
});
