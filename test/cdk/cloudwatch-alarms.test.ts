import { describe, expect, test } from "vitest";
import {
  type AlarmState,
  evaluatePoints,
  metricId,
  type Sample,
  TemplateAlarm,
  type Undocumented,
} from "../support/cloudwatch-alarms.ts";
import { metricMath } from "../support/metric-math.ts";

const pointOf: Record<string, boolean | undefined> = { "0": false, X: true, "-": undefined };

describe("missing data is treated as the examples of AWS's documentation say", () => {
  // https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
  const treatments = ["missing", "ignore", "breaching", "notBreaching"];
  const no = "INSUFFICIENT_DATA";
  const kept = "OK" satisfies AlarmState;
  test.each([
    ["3 of 3", 3, "0 - X - X", ["OK", "OK", "OK", "OK"]],
    ["3 of 3", 3, "0 - - - -", ["OK", "OK", "OK", "OK"]],
    ["3 of 3", 3, "- - - - -", [no, kept, "ALARM", "OK"]],
    ["3 of 3", 3, "0 X X - X", ["ALARM", "ALARM", "ALARM", "ALARM"]],
    ["3 of 3", 3, "- - X - -", ["ALARM", kept, "ALARM", "OK"]],
    ["3 of 3, not premature", 3, "- - - - X", [no, kept, "ALARM", "OK"]],
    ["3 of 3, not premature", 3, "- - - X -", [no, kept, "ALARM", "OK"]],
    ["2 of 3", 2, "0 - X - X", ["ALARM", "ALARM", "ALARM", "ALARM"]],
    ["2 of 3", 2, "0 0 X 0 X", ["ALARM", "ALARM", "ALARM", "ALARM"]],
    ["2 of 3", 2, "0 - X - -", ["OK", "OK", "ALARM", "OK"]],
    ["2 of 3", 2, "- - - - 0", ["OK", "OK", "ALARM", "OK"]],
    ["2 of 3", 2, "- - - X -", ["ALARM", kept, "ALARM", "OK"]],
  ])("%s: %i to alarm, %s", (_, datapointsToAlarm, points, states) => {
    const range = points.split(" ").map((point) => pointOf[point]);
    const found = treatments.map((treatMissingData) =>
      evaluatePoints(range, { evaluationPeriods: 3, datapointsToAlarm, treatMissingData }, kept),
    );
    expect(found).toEqual(states);
  });
});

describe("metric math", () => {
  const metrics = {
    a: [1, undefined, 3],
    b: [undefined, undefined, 2],
    none: [undefined, undefined, undefined],
  };
  const evaluated = (expression: string, fillsEmpty = true): unknown =>
    metricMath(expression, metrics, { fillsEmpty });

  test.each([
    ["FILL(a, 0)", [1, 0, 3]],
    ["SUM([a, b])", [1, undefined, 5]],
    ["SUM([FILL(a, 0), FILL(b, 0) * -10])", [1, 0, -17]],
    ["100 * FILL(b, 0) / FILL(a, 1)", [0, 0, 200 / 3]],
    ["a / (b - b)", [undefined, undefined, undefined]],
    ["-a + 2", [1, undefined, -1]],
  ])("%s", (expression, values) => {
    expect(evaluated(expression)).toEqual(values);
  });

  test("fills what is empty, or leaves it empty, as it is told", () => {
    expect(evaluated("FILL(none, 0)")).toEqual([0, 0, 0]);
    expect(evaluated("FILL(none, 0)", false)).toEqual([undefined, undefined, undefined]);
    expect(evaluated("SUM([FILL(none, 0), FILL(a, 0)])", false)).toEqual([1, 0, 3]);
  });

  test.each(["SUM(a)", "AVG(a)", "RUNNING_SUM(a)", "7", "[a, b]", "a b", "c", "FILL(a)", "a %"])(
    "%s, which no alarm may use or which is no metric math, is refused",
    (expression) => {
      expect(() => evaluated(expression)).toThrow();
    },
  );
});

describe("an alarm of a template", () => {
  const minute = 60_000;
  const sliding: Undocumented = { extraPoints: 2, window: "sliding", fillsEmpty: true };
  const dimensions = [{ Name: "Queue", Value: { "Fn::GetAtt": ["Letters", "Name"] } }];
  const properties = {
    Namespace: "N",
    MetricName: "M",
    Dimensions: dimensions,
    Period: 120,
    Statistic: "Sum",
    EvaluationPeriods: 1,
    Threshold: 2,
    ComparisonOperator: "GreaterThanOrEqualToThreshold",
    TreatMissingData: "notBreaching",
  };
  const id = metricId("N", "M", { Queue: "Letters.Name" });
  const at = (time: number, lateMs = 0): Sample => ({ at: time, arrivesAt: time + lateMs, value: 1 });
  const states = (alarm: object, samples: Sample[], to: number, how = sliding): string => {
    const history = new TemplateAlarm({ ...properties, ...alarm }).history(new Map([[id, samples]]), how, {
      from: 0,
      to: to * minute,
    });
    return history.map(({ state }) => ({ OK: "o", ALARM: "A", INSUFFICIENT_DATA: "?" })[state]).join("");
  };

  test("adds up what has arrived, by the time at which it was measured", () => {
    expect(states({}, [at(0), at(minute)], 1)).toBe("oo");
    expect(states({}, [at(0), at(minute)], 2)).toBe("ooA");
    expect(states({}, [at(0, 4 * minute), at(minute)], 3)).toBe("oooo");
    expect(states({}, [at(0, 4 * minute), at(minute)], 4)).toBe("ooooA");
  });

  test("periods end now, or at multiples of their length", () => {
    const samples = [at(minute), at(2 * minute)];
    expect(states({}, samples, 3)).toBe("oooA");
    const none = { ...sliding, extraPoints: 0 };
    expect(states({}, samples, 6, { ...none, window: "begun" })).toBe("ooooooo");
    expect(states({}, [at(2 * minute), at(3 * minute)], 5, { ...none, window: "begun" })).toBe("oooAAo");
    expect(states({}, [at(2 * minute), at(3 * minute)], 6, { ...none, window: "complete" })).toBe("ooooAAo");
  });

  test("decides nothing while it warms up", () => {
    const WarmUpConfiguration = {
      WarmUpPeriodDurationInMinutes: 3,
      OnlyStartEvaluatingAfterWarmUpPeriodEnds: true,
    };
    expect(states({ WarmUpConfiguration }, [], 4)).toBe("???oo");
  });

  test("that looks back on more than a day is evaluated on whole hours", () => {
    const alarm = { Period: 86_400, EvaluationPeriods: 2, DatapointsToAlarm: 1 };
    expect(states(alarm, [at(minute), at(2 * minute)], 60)).toBe(`${"o".repeat(60)}A`);
  });

  test("is refused where its evaluation is not known", () => {
    expect(() => states({ Statistic: "p99" }, [at(0)], 1)).toThrow("p99");
    expect(() => states({ ComparisonOperator: "GreaterThanThreshold" }, [at(0)], 1)).toThrow("GreaterThan");
    expect(() => states({ TreatMissingData: "?" }, [], 1)).toThrow("no treatment");
  });
});
