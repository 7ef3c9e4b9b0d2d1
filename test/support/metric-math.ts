/** The values of a metric by period, the oldest first; undefined where nothing was measured. */
export type Series = readonly (number | undefined)[];

type Value = number | Series | readonly Series[];

const token = /\s*(\d+(?:\.\d+)?|[A-Za-z_][A-Za-z0-9_]*|[-+*/(),[\]])/y;

/**
 * Evaluates a metric math expression, as far as alarms of this repository use it; everything else is refused.
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
  const tokens = tokensOf(expression);
  let next = 0;

  const refuse = (why: string): Error => new Error(`${why} in the expression ${JSON.stringify(expression)}`);
  const take = (expected: string): void => {
    if (tokens[next] !== expected) throw refuse(`${tokens[next] ?? "nothing"} in place of ${expected}`);
    next += 1;
  };
  const isNext = (...expected: string[]): boolean => expected.includes(tokens[next] ?? "");
  const listUntil = (end: string): Value[] => {
    const values: Value[] = [];
    while (!isNext(end)) {
      values.push(sum());
      if (!isNext(end)) take(",");
    }
    take(end);
    return values;
  };

  function sum(): Value {
    let left = product();
    while (isNext("+", "-")) {
      const sign = tokens[next++] === "+" ? 1 : -1;
      left = combine(left, product(), (a, b) => a + sign * b);
    }
    return left;
  }

  function product(): Value {
    let left = single();
    while (isNext("*", "/")) {
      const isTimes = tokens[next++] === "*";
      left = combine(left, single(), (a, b) => (isTimes ? a * b : b === 0 ? undefined : a / b));
    }
    return left;
  }

  function single(): Value {
    const word = tokens[next++];
    if (word === undefined) throw refuse("nothing in place of a value");
    if (word === "-") return combine(0, single(), (a, b) => a - b);
    if (word === "(") {
      const value = sum();
      take(")");
      return value;
    }
    if (word === "[") return listUntil("]").map((value) => seriesFrom(value, refuse));
    if (/^\d/.test(word)) return Number(word);
    if (isNext("(")) {
      next += 1;
      return called(word, listUntil(")"));
    }
    const series = metrics[word];
    if (series === undefined) throw refuse(`the unknown metric ${word}`);
    return series;
  }

  function called(name: string, values: readonly Value[]): Series {
    const [first, second] = values;
    if (name === "FILL" && isSeries(first) && typeof second === "number") {
      const isEmpty = first.every((value) => value === undefined);
      return isEmpty && !fillsEmpty ? first : first.map((value) => value ?? second);
    }
    if (name === "SUM" && isList(first)) {
      return first.reduce((all, one) => combine(all, one, (a, b) => a + b) as Series);
    }
    throw refuse(`${name}, or what it is called with, which is not known`);
  }

  const result = sum();
  if (next < tokens.length) throw refuse(`${tokens[next]} after the end`);
  return seriesFrom(result, refuse);
}

/** By expression: an alarm's is evaluated for every minute of weeks. */
const known = new Map<string, readonly string[]>();

function tokensOf(expression: string): readonly string[] {
  const tokens = known.get(expression) ?? tokenized(expression);
  known.set(expression, tokens);
  return tokens;
}

function tokenized(expression: string): string[] {
  const tokens: string[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < expression.length) {
    const at = token.lastIndex;
    const found = token.exec(expression)?.[1];
    if (found === undefined) throw new Error(`no metric math: ${JSON.stringify(expression.slice(at))}`);
    tokens.push(found);
  }
  return tokens;
}

function isList(value: Value | undefined): value is readonly Series[] {
  return Array.isArray(value) && value.length > 0 && value.every(Array.isArray);
}

function isSeries(value: Value | undefined): value is Series {
  return Array.isArray(value) && !isList(value);
}

function seriesFrom(value: Value, refuse: (why: string) => Error): Series {
  if (!isSeries(value)) throw refuse("a single number or an array, where a series has to be,");
  return value;
}

/** Of two series, one that has no value counts as 0, and two that have none give none. */
function combine(left: Value, right: Value, by: (a: number, b: number) => number | undefined): Value {
  if (isList(left) || isList(right)) throw new Error("arithmetic with arrays is not known");
  if (typeof left === "number" && typeof right === "number") return by(left, right) ?? Number.NaN;
  const ofBoth = (a: number | undefined, b: number | undefined): number | undefined =>
    a === undefined && b === undefined ? undefined : by(a ?? 0, b ?? 0);
  if (typeof left === "number") {
    return (right as Series).map((b) => (b === undefined ? undefined : by(left, b)));
  }
  if (typeof right === "number") return left.map((a) => (a === undefined ? undefined : by(a, right)));
  return left.map((a, index) => ofBoth(a, right[index]));
}
