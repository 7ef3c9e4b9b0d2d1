import { setTimeout as sleep } from "node:timers/promises";
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { SingleFlight } from "@leasehold/client/single-flight";
import type { Target } from "../../test/support/proxy.ts";
import { sdkClient, type TestTable } from "../../test/support/table.ts";
import { countRequests, type RequestCounter } from "./counted.ts";
import { median } from "./statistics.ts";

/** What it takes until all callers have a value that was missing. */
export interface FlightCost {
  readonly computation: string;
  readonly by: string;
  /** The most of a round. */
  readonly computations: number;
  readonly requests: number;
  /** When half of the callers have the value, and when the last one has it: medians of the rounds. */
  readonly halfMs: number;
  readonly lastMs: number;
  readonly fastestMs: number;
  readonly slowestMs: number;
  readonly isShared: boolean;
}

interface Computation {
  readonly name: string;
  readonly run: () => Promise<number>;
}

/** What a caller awaits. */
type Call = () => Promise<number>;

interface Contestant {
  readonly by: string;
  readonly isShared: boolean;
  /** One for each caller, all of them for one value that is missing. */
  readonly callers: (compute: Call) => readonly Call[];
}

interface Round {
  readonly computations: number;
  readonly requests: number;
  readonly halfMs: number;
  readonly lastMs: number;
}

/** How many ask for the value at once. */
export const flightCallers = 50;
const reads = 20;
const elsewhereMs = 200;
const warmUps = 1;
const rounds = 3;

/** Has 50 callers ask for a value that is missing: each computing it, and with single flights, in turns. */
export async function benchFlights(engine: Target, leases: TestTable): Promise<FlightCost[]> {
  const dynamodb = sdkClient(engine);
  const counter = countRequests(dynamodb);
  const computations: readonly Computation[] = [
    { name: `${reads} reads of the table`, run: () => readTable(reads) },
    { name: `${elsewhereMs} ms elsewhere`, run: () => sleep(elsewhereMs, 0) },
  ];
  const readTable = async (count: number): Promise<number> => {
    for (let index = 0; index < count; index += 1) {
      const Key = { pk: { S: `row-${index}` }, sk: { S: "row" } };
      await dynamodb.send(new GetItemCommand({ TableName: leases.tableName, Key }));
    }
    return count;
  };
  const flights = (clients: number): Contestant => ({
    by: `single flight, ${clients} clients`,
    isShared: true,
    callers: (compute) => {
      const key = leases.newKey();
      const made = Array.from(
        { length: clients },
        () => new SingleFlight(leases.client({ dynamodb }), { freshForMs: 60_000 }),
      );
      return Array.from({ length: flightCallers / clients }, () =>
        made.map((flight) => () => flight.getOrCompute(key, { compute })),
      ).flat();
    },
  });
  const contestants: readonly Contestant[] = [
    {
      by: "each for itself",
      isShared: false,
      callers: (compute) => Array.from({ length: flightCallers }, () => compute),
    },
    flights(5),
    flights(flightCallers),
  ];

  const costs: FlightCost[] = [];
  for (const [order, computation] of computations.entries()) {
    const all = contestants.map((): Round[] => []);
    for (let round = order === 0 ? -warmUps : 0; round < rounds; round += 1) {
      for (const [index, contestant] of contestants.entries()) {
        const measured = await measure(contestant, computation, counter);
        if (round >= 0) all[index]?.push(measured);
      }
    }
    costs.push(
      ...contestants.map(({ by, isShared }, index) => ({
        computation: computation.name,
        by,
        isShared,
        ...summary(all[index] ?? []),
      })),
    );
  }
  dynamodb.destroy();
  return costs;
}

async function measure(
  { callers }: Contestant,
  { run }: Computation,
  counter: RequestCounter,
): Promise<Round> {
  let computations = 0;
  const calls = callers(() => {
    computations += 1;
    return run();
  });
  counter.reset();
  const start = performance.now();
  const times = await Promise.all(
    calls.map(async (call) => {
      await call();
      return performance.now() - start;
    }),
  );
  return { computations, requests: counter.total, halfMs: median(times), lastMs: Math.max(...times) };
}

function summary(measured: readonly Round[]): Omit<FlightCost, "computation" | "by" | "isShared"> {
  const last = measured.map(({ lastMs }) => lastMs);
  return {
    computations: Math.max(...measured.map(({ computations }) => computations)),
    requests: median(measured.map(({ requests }) => requests)),
    halfMs: median(measured.map(({ halfMs }) => halfMs)),
    lastMs: median(last),
    fastestMs: Math.min(...last),
    slowestMs: Math.max(...last),
  };
}
