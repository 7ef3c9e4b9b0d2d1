/** Measures several ways to do a thing in turns, so that whatever disturbs one of them disturbs all. */

/** One way to do it. */
export interface Contestant {
  readonly name: string;
  /** Does it once. */
  readonly cycle: () => Promise<void>;
  /** What its process has used of the processor since its start, in microseconds. @default - that of this process */
  readonly cpuUs?: () => Promise<number>;
}

/** How long one cycle takes, and how much of the processor's time; ratios are to the first contestant's. */
export interface CycleTimes {
  readonly name: string;
  readonly cycles: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Of the medians over all rounds. */
  readonly ratio: number;
  readonly ratioOfP99: number;
  /** The lowest and the highest ratio of medians in one round: the noise. */
  readonly lowest: number;
  readonly highest: number;
  /** Its process's own for one cycle, in microseconds: the median of all rounds. */
  readonly cpuUs: number;
  readonly cpuRatio: number;
}

/** How long to measure. */
export interface Turns {
  readonly warmUpCycles: number;
  readonly rounds: number;
  readonly cyclesPerRound: number;
}

interface Samples {
  readonly rounds: number[][];
  readonly cpuUs: number[];
}

/** Runs the contestants round by round, each time another one first. */
export async function measureInTurns(
  contestants: readonly Contestant[],
  { warmUpCycles, rounds, cyclesPerRound }: Turns,
): Promise<CycleTimes[]> {
  const samples = new Map<Contestant, Samples>();
  for (const contestant of contestants) {
    await timesOf(contestant.cycle, warmUpCycles);
    samples.set(contestant, { rounds: [], cpuUs: [] });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const contestant of inTurn(contestants, round)) {
      const { cpuUs = ownCpuUs } = contestant;
      const before = await cpuUs();
      const times = await timesOf(contestant.cycle, cyclesPerRound);
      const usedUs = (await cpuUs()) - before;
      samples.get(contestant)?.rounds.push(times);
      samples.get(contestant)?.cpuUs.push(usedUs / cyclesPerRound);
    }
  }
  return summaries([...samples].map(([{ name }, own]) => ({ name, ...own })));
}

/** All of them, each time another one first. */
export function inTurn<One>(all: readonly One[], round: number): One[] {
  const turn = Math.abs(round) % all.length;
  return [...all.slice(turn), ...all.slice(0, turn)];
}

/** Compares what was measured with the first of it. */
export function summaries(measured: readonly (Samples & { readonly name: string })[]): CycleTimes[] {
  const [first] = measured;
  if (first === undefined) return [];
  const firstTimes = first.rounds.flat();
  return measured.map(({ name, rounds, cpuUs }) => {
    const times = rounds.flat();
    const ratios = rounds.map((round, index) => median(round) / median(first.rounds[index] ?? []));
    return {
      name,
      cycles: times.length,
      p50: median(times),
      p99: quantile(times, 0.99),
      ratio: median(times) / median(firstTimes),
      ratioOfP99: quantile(times, 0.99) / quantile(firstTimes, 0.99),
      lowest: Math.min(...ratios),
      highest: Math.max(...ratios),
      cpuUs: median(cpuUs),
      cpuRatio: median(cpuUs) / median(first.cpuUs),
    };
  });
}

/** What this process has used of the processor, in microseconds. */
export function ownCpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

async function timesOf(cycle: () => Promise<void>, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const start = performance.now();
    await cycle();
    times.push(performance.now() - start);
  }
  return times;
}

/** The value below which this share of the samples lies. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The middle one. */
export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}
