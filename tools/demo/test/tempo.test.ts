import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Ending, readOptions } from "../command-line.ts";
import { NotStaged, stretchFor, Tempo } from "../tempo.ts";

it.each([
  ["leaves the plan as it is on a quick machine", 200, 1],
  ["leaves it where the machine does a little else", 590, 1],
  ["stretches it by halves on a slow one", 1_000, 2],
  ["stretches it only so far", 60_000, 5],
])("the machine's speed %s", (_, measuredMs, stretch) => {
  expect(stretchFor(measuredMs)).toBe(stretch);
});

describe("the tempo", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("stretches every wait of the plan, gives up later what does not come, and says that it was no failure", async () => {
    const tempo = new Tempo(2);
    const ended: unknown[] = [];
    void tempo.delay(2_000).then(() => ended.push("the wait"));
    void tempo.within("an answer", new Promise(() => {})).catch((error: unknown) => ended.push(error));
    await vi.advanceTimersByTimeAsync(3_990);
    expect(ended).toEqual([]);
    await vi.advanceTimersByTimeAsync(85_000);
    expect(ended).toEqual(["the wait"]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(ended[1]).toEqual(new NotStaged("waited 90 s in vain for an answer"));
    expect(await tempo.within("an answer", Promise.resolve("yes"))).toBe("yes");
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
