import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Ending, readOptions } from "../command-line.ts";
import { NotStaged, stretchFor, Tempo } from "../tempo.ts";

describe("the machine's speed", () => {
  it.each([
    ["leaves the plan as it is on a quick machine", 200, 1],
    ["leaves it where the machine does a little else", 590, 1],
    ["stretches it on a slow one", 1_200, 2],
    ["stretches it by halves", 1_000, 2],
    ["stretches it only so far", 60_000, 5],
  ])("%s", (_, measuredMs, stretch) => {
    expect(stretchFor(measuredMs)).toBe(stretch);
  });
});

describe("the tempo", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Whether a promise has come to an end by now, and which. */
  function watched(promise: Promise<unknown>): { ended: () => unknown } {
    let end: unknown = "nothing yet";
    promise.then(
      (value) => {
        end = value;
      },
      (error: unknown) => {
        end = error;
      },
    );
    return { ended: () => end };
  }

  it("stretches every wait of the plan", async () => {
    using tempo = new Tempo(2.5);
    expect(tempo.ms(2_000)).toBe(5_000);
    const wait = watched(tempo.delay(2_000).then(() => "over"));
    await vi.advanceTimersByTimeAsync(4_990);
    expect(wait.ended()).toBe("nothing yet");
    await vi.advanceTimersByTimeAsync(20);
    expect(wait.ended()).toBe("over");
  });

  it("gives up what does not come, later on a slow machine, and says that it was no failure", async () => {
    using tempo = new Tempo(2);
    const wait = watched(tempo.until("a write", () => undefined));
    await vi.advanceTimersByTimeAsync(89_000);
    expect(wait.ended()).toBe("nothing yet");
    await vi.advanceTimersByTimeAsync(2_000);
    expect(wait.ended()).toEqual(new NotStaged("waited 90 s in vain for a write"));
  });

  it("does not count the time in which this process stood still", async () => {
    using tempo = new Tempo(1);
    const wait = watched(tempo.until("a write", () => undefined));
    const whole = watched(tempo.tooLong());
    await vi.advanceTimersByTimeAsync(1_000);
    const now = performance.now.bind(performance);
    // A minute and a half goes by without a timer.
    const sleep = vi.spyOn(performance, "now").mockImplementation(() => now() + 90_000);
    await vi.advanceTimersByTimeAsync(40_000);
    expect(wait.ended()).toBe("nothing yet");
    expect(whole.ended()).toBe("nothing yet");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(wait.ended()).toBeInstanceOf(NotStaged);
    await vi.advanceTimersByTimeAsync(80_000);
    expect(whole.ended()).toBeInstanceOf(NotStaged);
    sleep.mockRestore();
  });

  it("ends a wait for a promise with what that comes to", async () => {
    using tempo = new Tempo(1);
    expect(await tempo.within("an answer", Promise.resolve("yes"))).toBe("yes");
    await expect(tempo.within("an answer", Promise.reject(new Error("no")))).rejects.toThrow("no");
    const never = watched(tempo.within("an answer", new Promise(() => {})));
    await vi.advanceTimersByTimeAsync(46_000);
    expect(never.ended()).toEqual(new NotStaged("waited 45 s in vain for an answer"));
  });
});

describe("the command line", () => {
  it("asks for the incidents alone, at the machine's own pace, unless it says otherwise", () => {
    expect(readOptions([])).toEqual({ all: false, stretch: undefined, console: false });
    expect(readOptions(["--all", "--stretch", "2.5"])).toEqual({ all: true, stretch: 2.5, console: false });
  });

  it.each([[["--stretch", "0.5"]], [["--stretch", "fast"]], [["--everything"]], [["all"]]])(
    "refuses %j, and says what there is",
    (args) => {
      expect(() => readOptions(args)).toThrow(Ending);
      expect(() => readOptions(args)).toThrow("npm start -- --all");
    },
  );
});
