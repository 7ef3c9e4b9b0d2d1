/** The values of a metric by period, the oldest first; undefined where nothing was measured. */
export type Series = readonly (number | undefined)[];

/** A number, or a filled metric. */
type Factor = number | Series;

/**
 * Evaluates a metric math expression of the two forms that alarms of this repository have; everything else is refused:
 *
 *     SUM([FILL(a, 0), FILL(b, 0) * -1])
 *     100 * FILL(a, 0) / FILL(b, 1)
 *
 * Refused on purpose: SUM and its like of a single series. CloudWatch retrieves more points than an alarm has evaluation
 * periods, and these functions add the others in: "we recommend that you do not use this function in CloudWatch alarms",
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
 *
 * It is not documented whether FILL fills a series that has no point at all; `fillsEmpty` says which.
 */
export function metricMath(
  expression: string,
  metrics: Readonly<Record<string, Series>>,
  { fillsEmpty }: { readonly fillsEmpty: boolean },
): Series {
  const factor = (text: string): Factor => {
    if (/^-?\d+$/.test(text)) return Number(text);
    const [, name = "", filling] = /^FILL\((\w+), (\d+)\)$/.exec(text) ?? [];
    const series = metrics[name];
    if (series === undefined) throw new Error(`${text} in the expression ${expression} is not known`);
    const isEmpty = series.every((value) => value === undefined);
    return isEmpty && !fillsEmpty ? series : series.map((value) => value ?? Number(filling));
  };
  const product = (text: string): Factor => {
    const [first = "", ...rest] = text.split(/ ([*/]) /);
    let result = factor(first);
    for (let index = 0; index < rest.length; index += 2) {
      const isTimes = rest[index] === "*";
      result = combined(result, factor(rest[index + 1] ?? ""), (a, b) =>
        isTimes ? a * b : b === 0 ? undefined : a / b,
      );
    }
    return result;
  };
  const terms = /^SUM\(\[(.+)\]\)$/.exec(expression)?.[1]?.split(/, (?=FILL)/) ?? [expression];
  const total = terms.map(product).reduce((all, one) => combined(all, one, (a, b) => a + b));
  if (typeof total === "number") throw new Error(`the expression ${expression} has no metric`);
  return total;
}

/** Of two series, one that has no value counts as 0, and two that have none give none. */
function combined(left: Factor, right: Factor, by: (a: number, b: number) => number | undefined): Factor {
  if (typeof left === "number" && typeof right === "number") return by(left, right) ?? Number.NaN;
  if (typeof left === "number")
    return (right as Series).map((b) => (b === undefined ? undefined : by(left, b)));
  if (typeof right === "number") return left.map((a) => (a === undefined ? undefined : by(a, right)));
  return left.map((a, index) => {
    const b = right[index];
    return a === undefined && b === undefined ? undefined : by(a ?? 0, b ?? 0);
  });
}
