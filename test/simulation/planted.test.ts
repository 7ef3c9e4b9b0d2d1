import { afterEach, describe, expect, it, vi } from "vitest";
import type * as Expressions from "../../packages/client/src/expressions.ts";
import { release } from "../../packages/client/src/expressions.ts";
import type * as JudgeModule from "../../packages/client/src/protocol/judge.ts";
import type * as TenancyModule from "../../packages/client/src/protocol/tenancy.ts";
import type * as ValidityModule from "../../packages/client/src/protocol/validity.ts";
import type { Belief } from "../../packages/client/src/protocol/validity.ts";
import type * as RecordModule from "../../packages/client/src/record.ts";
import type { UpdateRequest } from "../../packages/client/src/store.ts";
import type { Moment } from "../../packages/client/src/time/clock.ts";
import type * as ServiceClockModule from "../../packages/client/src/time/service-clock.ts";
import type { ExpiryCheck, ServiceClock } from "../../packages/client/src/time/service-clock.ts";
import { lock } from "./primitives/lock.ts";
import { tellViolation } from "./report.ts";
import { type Outcome, type Subject, simulate } from "./simulation.ts";

const source = "../../packages/client/src";
/** A mistake that takes more seeds than this to show itself would slip through `npm test`. */
const mostSeeds = 400;

/** Loads a copy of the client in which one module has a mistake. */
async function plant<Module extends object>(
  path: string,
  mistake: (original: Module) => Partial<Module>,
): Promise<Subject> {
  vi.resetModules();
  vi.doMock(path, async (importOriginal) => {
    const original = await importOriginal<Module>();
    return { ...original, ...mistake(original) };
  });
  return await import("@leasehold/client");
}

const plantInExpressions = (mistake: (original: typeof Expressions) => Partial<typeof Expressions>) =>
  plant<typeof Expressions>(`${source}/expressions.ts`, mistake);

async function firstViolation(subject: Subject): Promise<Outcome> {
  for (let seed = 1; seed <= mostSeeds; seed += 1) {
    const outcome = await simulate(lock, seed, { subject });
    if (outcome.violation !== undefined) return outcome;
  }
  throw new Error(`no violation in ${mostSeeds} seeds`);
}

/** Without a part of its condition; the names and values that only this part used go with it. */
function withCondition(request: UpdateRequest, condition: string): UpdateRequest {
  const isUsed = ([placeholder]: [string, unknown]): boolean => {
    return `${request.update} ${condition} `.match(new RegExp(`${placeholder}\\b`)) !== null;
  };
  return {
    ...request,
    condition,
    names: Object.fromEntries(Object.entries(request.names).filter(isUsed)),
    values: Object.fromEntries(Object.entries(request.values).filter(isUsed)),
  };
}

afterEach(() => {
  for (const path of [
    "expressions.ts",
    "record.ts",
    "protocol/judge.ts",
    "protocol/tenancy.ts",
    "protocol/validity.ts",
    "time/service-clock.ts",
  ]) {
    vi.doUnmock(`${source}/${path}`);
  }
});

describe("the simulation catches", { tags: ["long"] }, () => {
  it("a release that does not insist on its token", async () => {
    const subject = await plantInExpressions((original) => ({
      release: (ending) => withCondition(original.release(ending), "attribute_exists(#token)"),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/a stale write of .* changed/);
  });

  it("an expiry that is judged without the allowance for skew", async () => {
    const subject = await plant<typeof JudgeModule>(`${source}/protocol/judge.ts`, ({ Judge }) => ({
      Judge: class extends Judge {
        constructor(clock: ServiceClock, clockSkewMs: number) {
          const hasty = {
            monotonic: () => clock.monotonic(),
            earliest: () => (clock.latest() ?? 0) + clockSkewMs,
          };
          super(hasty as ServiceClock, clockSkewMs);
        }
      },
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a fencing token that is lost when the item goes", async () => {
    const forgetful = (request: UpdateRequest): UpdateRequest => ({
      ...request,
      update: request.update.replace("if_not_exists(#fence, :acquiredAt)", "if_not_exists(#fence, :one)"),
    });
    const subject = await plantInExpressions((original) => ({
      acquire: (grant) => forgetful(original.acquire(grant)),
      takeOver: (grant, judged) => forgetful(original.takeOver(grant, judged)),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/the fencing token of .* went from|a stale fenced write/);
  });

  it("an own write that is taken for contention", async () => {
    const subject = await plant<typeof RecordModule>(`${source}/record.ts`, () => ({
      isHeldBy: () => false,
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by its own acquisition/);
  });

  it("a heartbeat that goes on after the release", async () => {
    const subject = await plant<typeof TenancyModule>(`${source}/protocol/tenancy.ts`, ({ Tenancy }) => ({
      Tenancy: class extends Tenancy {
        readonly #context: ConstructorParameters<typeof Tenancy>[0];

        constructor(...parameters: ConstructorParameters<typeof Tenancy>) {
          super(...parameters);
          [this.#context] = parameters;
        }

        override async release(): Promise<TenancyModule.Ended> {
          const { key, token, fencingToken } = this.terms.record;
          const { store, clock, retentionMs } = this.#context;
          const request = release({
            key,
            token,
            fencingToken,
            now: clock.now(),
            retentionMs,
            slot: undefined,
          });
          const call = { signal: new AbortController().signal, isCurrent: () => true };
          return { wasOurs: (await store.update(request, call)).applied, isRecorded: false };
        }
      },
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/sent a renewal of .* after it had begun to release/);
  });

  it("a takeover that does not insist on the record that was judged", async () => {
    const subject = await plantInExpressions((original) => ({
      takeOver: (grant, judged) =>
        withCondition(original.takeOver(grant, judged), "attribute_exists(#token)"),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("a slot that is not looked at before a grant", async () => {
    const subject = await plantInExpressions((original) => ({
      acquire: (grant) => original.acquire({ ...grant, slot: undefined }),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/was granted the slot/);
  });

  it("a renewal that may shorten a newer one", async () => {
    const subject = await plantInExpressions((original) => ({
      renew: (renewal) => withCondition(original.renew(renewal), "#token = :token"),
    }));
    const { violation } = await firstViolation(subject);
    expect(violation).toMatch(/is held by .* and by/);
  });

  it("an expiry that is judged by the caller's wall clock", async () => {
    const subject = await plant<typeof ServiceClockModule>(
      `${source}/time/service-clock.ts`,
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
      `${source}/time/service-clock.ts`,
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
      `${source}/time/service-clock.ts`,
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
    const subject = await plant<typeof ValidityModule>(`${source}/protocol/validity.ts`, ({ Validity }) => ({
      Validity: class extends Validity {
        readonly #clock: ServiceClock;

        constructor(...parameters: ConstructorParameters<typeof Validity>) {
          super(...parameters);
          this.#clock = parameters[1];
        }

        override confirm({ forMs }: Belief, expiresAt: number): void {
          super.confirm({ since: this.#clock.moment(), forMs }, expiresAt);
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
      plantInExpressions((original) => ({
        release: (ending) => withCondition(original.release(ending), "attribute_exists(#token)"),
      }));
    const first = await firstViolation(await plantRelease());
    const again = await simulate(lock, first.seed, { subject: await plantRelease() });
    expect(again.timeline).toEqual(first.timeline);
    expect(again.violation).toBe(first.violation);

    const story = tellViolation(first);
    expect(story).toContain(`npm run simulate -- --primitive lock --seed ${first.seed}`);
    expect(story).toContain(first.violation);
    expect(story).toMatch(/\d+\.\d{3} s {2}p\d/);
  });
});
