/** Schedules in processes that go on: each slot has one run, whatever becomes of the processes. */
import { ClientClosedError, LeaseClient, LeaseServiceError } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import {
  JobRuns,
  type JobRunsOptions,
  parseScheduleExpression,
  type RunContext,
  type SchedulingOptions,
} from "../../packages/jobs/src/index.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { WorldOfClocks, wrongClocks } from "../support/wrong-clocks.ts";

const hourMs = 3_600_000;
const start = Date.UTC(2026, 0, 1, 8, 30);
const hourly = "cron(0 * * * ? *)";

let clock: ManualClock;
let store: ScriptedStore;
let stop: AbortController;
/** What was run, by whom and when. */
let ran: { readonly slot: string; readonly by: string; readonly at: string; readonly attempt: number }[];
let failures: [slot: string | undefined, message: string][];

beforeEach(() => {
  clock = new ManualClock(start);
  store = new ScriptedStore();
  stop = new AbortController();
  ran = [];
  failures = [];
});

const hour = (slot: string): string => slot.slice(11, 16);
const slotsRun = (): string[] => ran.map(({ slot }) => hour(slot));

interface Process {
  readonly client: LeaseClient;
  readonly ended: Promise<void>;
}

function begin(
  by: string,
  options: Partial<SchedulingOptions> = {},
  work: (context: RunContext) => unknown = () => undefined,
  more: JobRunsOptions & { readonly schedule?: never } = {},
  schedule: Parameters<JobRuns["schedule"]>[0] = hourly,
): Process {
  const client = new LeaseClient({ store, clock, owner: by, leaseDurationMs: 30_000 });
  const runs = new JobRuns(client, "report", more);
  const ended = runs.schedule(
    schedule,
    async (context) => {
      const { slot, attempt } = context;
      ran.push({ slot, by, at: new Date(clock.now()).toISOString(), attempt });
      await work(context);
    },
    {
      signal: stop.signal,
      onFailure: (error, slot) => void failures.push([slot && hour(slot), (error as Error).message]),
      ...options,
    },
  );
  ended.catch(() => undefined);
  return { client, ended };
}
const end = async (...processes: readonly Process[]): Promise<void> => {
  stop.abort();
  await Promise.all(processes.map(({ ended }) => ended));
};

describe("a schedule", () => {
  it("has one run for each slot, on time, however many processes keep it", async () => {
    const processes = ["a", "b", "c"].map((by) => begin(by));
    await clock.advance(5 * hourMs);
    expect(slotsRun()).toEqual(["09:00", "10:00", "11:00", "12:00", "13:00"]);
    expect(ran.every(({ slot, at }) => Date.parse(at) - Date.parse(slot) < 1_000)).toBe(true);
    await end(...processes);
    await clock.advance(2 * hourMs);
    expect(ran).toHaveLength(5);
    expect(failures).toEqual([]);
  });

  it("takes any object with next, makes 2 requests a run, and ends with its last time", async () => {
    const times = [9, 10].map((hours) => new Date(Date.UTC(2026, 0, 1, hours)));
    const next = (after: Date): Date | undefined => times.find((time) => time > after);
    const { ended } = begin("a", {}, undefined, {}, { next });
    await clock.advance(3 * hourMs);
    await ended;
    expect(slotsRun()).toEqual(["09:00", "10:00"]);
    expect(store.calls.map(({ method }) => method)).toEqual(Array(4).fill("update"));
  });

  it("repeats a failed attempt after a while, as long as attempts are left, and goes on with the next slot", async () => {
    const process = begin(
      "a",
      { retryAfterMs: 300_000 },
      ({ slot }) => {
        if (hour(slot) === "09:00") throw new Error("no");
      },
      { maxAttempts: 3 },
    );
    await clock.advance(2 * hourMs);
    expect(ran.map(({ slot, at, attempt }) => [hour(slot), hour(at), attempt])).toEqual([
      ["09:00", "09:00", 1],
      ["09:00", "09:05", 2],
      ["09:00", "09:10", 3],
      ["10:00", "10:00", 1],
    ]);
    expect(failures).toEqual(Array.from({ length: 3 }, () => ["09:00", "no"]));
    await end(process);
  });

  it("is kept by another process when the one that runs a slot dies", async () => {
    // It does not renew its lease, and does not end.
    const dead = begin("dead", {}, () => new Promise(() => undefined), { heartbeat: false });
    const other = begin("other");
    await clock.advance(30 * 60_000 + 1_000);
    expect(ran).toMatchObject([{ by: "dead", attempt: 1 }]);
    await clock.advance(60_000);
    expect(ran.slice(1)).toMatchObject([{ by: "other", attempt: 2 }]);
    expect(slotsRun()).toEqual(["09:00", "09:00"]);
    stop.abort();
    await other.ended;
    expect(dead.client.held()).toEqual([]);
  });

  it("looks again at a slot that another process runs, and finds it done", async () => {
    const slow = begin("slow", {}, async () => {
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), 150_000));
    });
    const other = begin("other");
    await clock.advance(30 * 60_000);
    store.calls.length = 0;
    await clock.advance(60_000);
    expect(store.count("update")).toBeGreaterThan(0);
    await clock.advance(10 * 60_000);
    expect(ran).toHaveLength(1);
    store.calls.length = 0;
    await clock.advance(15 * 60_000);
    expect(store.calls).toEqual([]);
    expect(failures).toEqual([]);
    await end(slow, other);
  });
});

describe("the last slots of a schedule", () => {
  const lastTimes = (...seconds: readonly number[]) => {
    const times = seconds.map((after) => new Date(start + after * 1_000));
    return { next: (after: Date): Date | undefined => times.find((time) => time > after) };
  };

  it("are tried again, when it is time, before it ends", async () => {
    const fails = ({ attempt }: RunContext): void => {
      if (attempt === 1) throw new Error("no");
    };
    const { ended } = begin("a", { retryAfterMs: 90_500 }, fails, {}, lastTimes(60));
    await clock.advance(hourMs);
    await ended;
    expect(ran.map(({ at, attempt }) => [at.slice(11, 23), attempt])).toEqual([
      ["08:31:00.000", 1],
      ["08:32:30.500", 2],
    ]);
  });

  it("are not left out where the clock is set back while the one before them runs, and do not begin early", async () => {
    const setsBack = ({ slot }: RunContext): void => {
      if (slot.endsWith(":29:20.000Z")) clock.jump(-30_000);
    };
    const { ended } = begin("a", { catchUpMs: hourMs }, setsBack, {}, lastTimes(-40, -5));
    await clock.advance(hourMs);
    await ended;
    expect(ran.map(({ slot, at }) => [slot.slice(14, 19), at.slice(14, 19)])).toEqual([
      ["29:20", "30:00"],
      ["29:55", "29:55"],
    ]);
  });
});

describe("slots that were missed", () => {
  it("are not run without catchUpMs, and are run oldest first with it, as far back as it goes, at the begin alone", async () => {
    const plain = begin("a");
    await clock.advance(1_000);
    expect(ran).toEqual([]);
    await end(plain);
    stop = new AbortController();
    const catching = begin("b", { catchUpMs: 3 * hourMs });
    await clock.advance(0);
    expect(slotsRun()).toEqual(["06:00", "07:00", "08:00"]);
    await clock.advance(hourMs);
    expect(store.count("query")).toBe(1);
    await end(catching);
  });

  it.each([
    [0, ["08:00"]],
    [2 * hourMs, ["06:00", "07:00", "08:00"]],
  ])(
    "are none of those that are due at the very moment of the begin: with a catchUpMs of %i",
    async (catchUpMs, slots) => {
      clock = new ManualClock(Date.UTC(2026, 0, 1, 8));
      const process = begin("a", { catchUpMs });
      await clock.advance(1_000);
      expect(slotsRun()).toEqual(slots);
      await end(process);
    },
  );

  it("while the machine was suspended: the latest alone, or all that catchUpMs reaches", async () => {
    const plain = begin("a");
    await clock.advance(hourMs);
    clock.freeze(5 * hourMs);
    await clock.advance(61_000);
    expect(slotsRun()).toEqual(["09:00", "14:00"]);
    await end(plain);
    ran.length = 0;
    stop = new AbortController();
    const catching = begin("b", { catchUpMs: 3 * hourMs });
    await clock.advance(1_000);
    clock.freeze(Date.UTC(2026, 0, 1, 19) - clock.now());
    await clock.advance(61_000);
    expect(slotsRun()).toEqual(["12:00", "13:00", "16:00", "17:00", "18:00", "19:00"]);
    await end(catching);
  });

  it("are noticed within a minute of a clock that was set forward", async () => {
    const process = begin("a");
    await clock.advance(1_000);
    clock.jump(2 * hourMs);
    await clock.advance(61_000);
    expect(slotsRun()).toEqual(["10:00"]);
    await end(process);
  });

  it("are none where the clock was set back, and no slot has two runs", async () => {
    const process = begin("a");
    await clock.advance(hourMs);
    clock.jump(-2 * hourMs);
    await clock.advance(3 * hourMs);
    expect(slotsRun()).toEqual(["09:00", "08:00", "10:00"]);
    await end(process);
  });

  it("are not tried where their attempts are used up", async () => {
    const runs = new JobRuns(new LeaseClient({ store, clock }), "report", { maxAttempts: 1 });
    const fail = (): never => {
      throw new Error("no");
    };
    await expect(runs.run("2026-01-01T08:00:00.000Z", fail)).rejects.toThrow("no");
    store.calls.length = 0;
    const process = begin("a", { catchUpMs: hourMs }, undefined, { maxAttempts: 1 });
    await clock.advance(1_000);
    expect(store.calls.map(({ method }) => method)).toEqual(["query"]);
    await end(process);
  });

  it("are given up once they are older than what is kept, for they may have run and be forgotten", async () => {
    store.weather = "throttled";
    const process = begin("a", { retryAfterMs: hourMs / 2 }, undefined, { keepForMs: 2 * hourMs });
    await clock.advance(3.25 * hourMs);
    store.weather = undefined;
    await clock.advance(hourMs / 2);
    expect(slotsRun()).toEqual(["10:00", "11:00", "12:00"]);
    await end(process);
  });

  it("are looked for again when the service could not be asked at first", async () => {
    const query = store.query.bind(store);
    let count = 0;
    store.query = async (...asked) => {
      count += 1;
      if (count > 1) return await query(...asked);
      store.next("throttled");
      return await store.update({} as never, asked[1]).then(() => query(...asked));
    };
    const process = begin("a", { catchUpMs: hourMs, retryAfterMs: 5_000 });
    await clock.advance(1_000);
    expect(ran).toEqual([]);
    expect(failures).toEqual([[undefined, "throttled"]]);
    await clock.advance(5_000);
    expect(slotsRun()).toEqual(["08:00"]);
    await end(process);
  });
});

describe("the end of a schedule", () => {
  it("comes with the signal, which aborts the work, too", async () => {
    let reason: unknown;
    const process = begin("a", {}, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      reason = signal.reason;
      signal.throwIfAborted();
    });
    await clock.advance(hourMs);
    stop.abort(new Error("enough"));
    await clock.advance(0);
    await process.ended;
    expect(reason).toEqual(new Error("enough"));
    expect(failures).toEqual([]);
    expect(process.client.held()).toEqual([]);
  });

  it("comes with the signal while the table is asked", async () => {
    store.next("hangs");
    const process = begin("a");
    await clock.advance(hourMs / 2);
    expect(store.calls).toHaveLength(1);
    await end(process);
    expect(failures).toEqual([]);
  });

  it("comes with the signal while the table is asked for the time, by a read that may lag", async () => {
    store.isLocal = false;
    const asked: object[] = [];
    store.get = async (request, { signal }) => {
      asked.push(request);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw new LeaseServiceError("LEASE_NO_ANSWER", "cut off");
    };
    const process = follow(begin("a").ended, clock);
    await clock.advance(1_000);
    stop.abort();
    await settled();
    expect([process.at, process.error]).toEqual([clock.monotonic(), undefined]);
    expect(failures).toEqual([]);
    expect(asked).toMatchObject([{ key: { pk: "report" }, consistent: false }]);
  });

  it("comes with the client's end, as an error, also without a signal", async () => {
    const client = new LeaseClient({ store, clock });
    const onFailure = (error: unknown): void => void failures.push(["09:00", (error as Error).message]);
    const wasRun: string[] = [];
    const ended = new JobRuns(client, "report").schedule(hourly, ({ slot }) => void wasRun.push(slot), {
      onFailure,
    });
    ended.catch(() => undefined);
    store.next("throttled");
    await clock.advance(hourMs);
    expect(failures).toEqual([["09:00", "throttled"]]);
    expect(wasRun.map(hour)).toEqual(["09:00"]);
    await client.close();
    await expect(ended).rejects.toBeInstanceOf(ClientClosedError);
  });

  it.each(["update", "query", "get"] as const)("comes with a mistake in the program: %s", async (method) => {
    const mistake = new TypeError("a mistake");
    store.isLocal = method !== "get";
    Object.assign(store, { [method]: () => Promise.reject(mistake) });
    const { ended } = begin("a", { catchUpMs: hourMs });
    await clock.advance(1_000);
    expect(failures).toEqual([]);
    await expect(ended).rejects.toBe(mistake);
  });
});

describe("before an answer has told the time", () => {
  beforeEach(() => {
    store.isLocal = false;
    const get = store.get.bind(store);
    let asked = 0;
    store.get = async (...call) => {
      asked += 1;
      if (asked <= 2) throw new LeaseServiceError("LEASE_THROTTLED", "too busy");
      return await get(...call);
    };
  });

  it("a schedule asks again, tells of each failure, and runs no slot by a clock that is slow", async () => {
    store.time = () => ({ earliest: clock.now() + 2 * hourMs, latest: clock.now() + 2 * hourMs + 1_000 });
    const process = begin("a", { retryAfterMs: 20 * 60_000 });
    await clock.advance(hourMs);
    expect(failures).toEqual(Array(2).fill([undefined, "too busy"]));
    expect(slotsRun()).toEqual(["11:00"]);
    await end(process);
  });

  it("a schedule without a signal asks again, and runs its slots", async () => {
    const at = new Date(start + hourMs / 2);
    const next = (after: Date): Date | undefined => (after < at ? at : undefined);
    const ended = new JobRuns(new LeaseClient({ store, clock }), "report").schedule(
      { next },
      ({ slot, attempt }) => void ran.push({ slot, by: "a", at: slot, attempt }),
      { onFailure: (error) => void failures.push([undefined, (error as Error).message]) },
    );
    await clock.advance(hourMs);
    await ended;
    expect(failures).toEqual(Array(2).fill([undefined, "too busy"]));
    expect(slotsRun()).toEqual(["09:00"]);
  });

  it("a schedule goes on by its own clock where the policy does not allow it to ask", async () => {
    store.get = () => Promise.reject(new LeaseServiceError("LEASE_REQUEST_REJECTED", "not allowed"));
    const process = begin("a");
    await clock.advance(hourMs);
    expect(slotsRun()).toEqual(["09:00"]);
    expect(failures).toEqual([]);
    await end(process);
  });
});

it.each(wrongClocks)(
  "on a machine whose clock is $name, each slot runs when it is due, and none is missed before",
  async (wrong) => {
    const world = new WorldOfClocks();
    const machine = world.machine(wrong);
    const runs = new JobRuns(new LeaseClient({ store: world.store, clock: machine }), "report");
    await world.time.advance(30_000);
    const since = new Date(world.time.now() - 2 * hourMs);
    const missed: string[] = [];
    for await (const { slot } of new JobRuns(
      new LeaseClient({ store: world.store, clock: machine }),
      "report",
    ).missed({ schedule: parseScheduleExpression(hourly), since }))
      missed.push(hour(slot));
    expect(missed).toEqual(["23:00", "00:00"]);
    const late: Record<string, number> = {};
    const work = ({ slot }: RunContext): void => {
      late[hour(slot)] = world.time.now() - Date.parse(slot);
    };
    const ended = runs.schedule("cron(* * * * ? *)", work, { signal: stop.signal });
    for (let minute = 0; minute < 3; minute += 1) await world.time.advance(60_000);
    stop.abort();
    await ended;
    expect(Object.keys(late)).toEqual(["00:01", "00:02", "00:03"]);
    // An answer tells the time to a second.
    expect(Math.max(...Object.values(late).map(Math.abs))).toBeLessThanOrEqual(2_000);
  },
);

it("jitter begins runs at random within its time, and never before their slot", async () => {
  const process = begin("a", { jitterMs: 600_000 });
  await clock.advance(20 * hourMs);
  const delays = ran.map(({ slot, at }) => Date.parse(at) - Date.parse(slot));
  expect(delays).toHaveLength(20);
  for (const ms of delays) expect(ms >= 0 && ms <= 600_000 + 1_000).toBe(true);
  expect(new Set(delays.map((ms) => Math.round(ms / 10_000))).size).toBeGreaterThan(5);
  await end(process);
});

it("a failure that nobody listens to is told on the standard error", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const client = new LeaseClient({ store, clock });
  const mistake = new Error("no");
  const failure = new LeaseServiceError("LEASE_THROTTLED", "too busy");
  store.query = () => Promise.reject(failure);
  const ended = new JobRuns(client, "j").schedule(hourly, () => Promise.reject(mistake), {
    signal: stop.signal,
    catchUpMs: 1,
  });
  await clock.advance(hourMs / 2);
  await settled();
  expect(said).toHaveBeenCalledWith("missed runs cannot be looked for:", failure);
  expect(said).toHaveBeenCalledWith("the run of 2026-01-01T09:00:00.000Z failed:", mistake);
  stop.abort();
  await ended;
});

it("half of the time that is kept may be looked back", async () => {
  const process = begin("a", { catchUpMs: hourMs }, undefined, { keepForMs: 2 * hourMs });
  await clock.advance(0);
  expect(slotsRun()).toEqual(["08:00"]);
  await end(process);
});
