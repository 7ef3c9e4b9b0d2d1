/**
 * How far each primitive should go on one key: by DynamoDB's published limits, the units that docs/requests.md promises and
 * the time of an answer. Beside each figure stands how the simulation finds it, and by how much the two may differ.
 */
import { fair } from "@leasehold/client/fair";
import { table, writeGenerated } from "../costs/markdown.ts";
import { documentedOperations } from "../operations/index.ts";
import { documented, roundTripMs } from "./limited-table.ts";
import {
  cyclesPerSecond,
  divided,
  groupsPerSecond,
  type HandOver,
  handOver,
  hitsPerSecond,
  keepLeases,
  keepPermits,
  largest,
  sharingGroupsPerSecond,
  slotsPerSecond,
  tasksPerSecond,
  throttledLooks,
  triesOnHeldLock,
  unitsOfLine,
} from "./scenarios.ts";

/** One figure on paper, and its simulation. */
export interface Figure {
  readonly what: string;
  readonly paper: number;
  /** How the figure on paper is calculated. */
  readonly because: string;
  /** The share by which the simulation may differ; undefined where the paper says no more than "at most". */
  readonly within: number | undefined;
  simulate(): Promise<number>;
}

/** The units of an operation, as docs/requests.md promises them. */
function unitsOf(of: string, operation: string): { readonly write: number; readonly read: number } {
  const found = documentedOperations.find((one) => one.of === of && one.name === operation);
  const { writeUnits: write, readUnits: read } = found ?? {};
  if (write === undefined || read === undefined)
    throw new Error(`docs/requests.md has no units of "${operation}" of ${of}`);
  return { write, read };
}

const { writesPerKey, readsPerKey, writesPerTable } = documented;
const roundTripsPerSecond = 1_000 / roundTripMs;

/** What a seat, and a ticket, take of their items, with an owner as long as those by default. */
const [seatBytes, ticketBytes] = [235, 104];
const unitBytes = 1_024;
/** A heartbeat renews each third of a lease. */
const renewalsPerLease = 3;

/** Each renewal is billed for all seats, so what a semaphore takes grows with the square of its holders. */
const holdersOf = (leaseSeconds: number): number =>
  Math.sqrt((writesPerKey * leaseSeconds * unitBytes) / (renewalsPerLease * seatBytes));

const isServed = (throttled: number): boolean => throttled < 0.01;

/** Waiters that look as in "wait 10 minutes", without the first 10 seconds, which are denser. */
const lookUnitsPerSecond =
  (unitsOf("Lock", "wait 10 minutes for a held lock").read -
    unitsOf("Lock", "wait 10 s for a held lock").read) /
  590;

/** A waiter in line writes as in "wait an hour at the head", without joining and leaving. */
const ticketWritesPerSecond =
  (unitsOf("Fair lock", "join, wait an hour at the head, and leave").write -
    unitsOf("Fair lock", "join, wait a minute at the head, and leave").write) /
  3_540;
const lineUnits = (waiters: number): number =>
  waiters * ticketWritesPerSecond * Math.ceil((waiters * ticketBytes) / unitBytes);

const taskUnits = unitsOf("Tasks", "claim 3 waiting tasks").write / 3 + unitsOf("Tasks", "succeed").write;
const hundredth = 100;

export const figures: readonly Figure[] = [
  {
    what: "lock: acquisitions and releases a second, one caller",
    paper: roundTripsPerSecond / 2,
    because: "two answers, one after the other",
    within: 0.05,
    simulate: () => cyclesPerSecond(1, 5),
  },
  {
    what: "fair lock: hand-overs a second, 5 processes",
    paper: roundTripsPerSecond / 2,
    because: "a release, a look of the next caller, an acquisition",
    within: undefined,
    simulate: () => cyclesPerSecond(5, 20, fair({ maxWaiters: 500 })),
  },
  {
    what: "lock: acquisitions and releases a second without order, 5 processes",
    paper: roundTripsPerSecond / 2,
    because: "as one caller: mostly the last holder gets it again",
    within: 0.1,
    simulate: () => cyclesPerSecond(5, 20),
  },
  {
    what: "group of 10 locks: acquisitions and releases a second, one caller",
    paper: 1_000 / (3 * roundTripMs),
    because: "a transaction takes as long as two writes",
    within: 0.05,
    simulate: () => groupsPerSecond(10, 5),
  },
  {
    what: "groups of 2 locks that share one: taken and let go a second, 20 processes",
    paper: 1_000 / (3 * roundTripMs),
    because: "the same, and conflicts of the transactions",
    within: undefined,
    simulate: () => sharingGroupsPerSecond(20, 20),
  },
  {
    what: "lock: tries a second while it is held, of 1,200 that come",
    paper: writesPerKey / unitsOf("Lock", "try a held lock").write,
    because: "units of one key",
    within: 0.05,
    simulate: async () => {
      const { served, lost } = await triesOnHeldLock(1_200, 20);
      if (lost > 0) throw new Error("the holder has lost its lease to callers that only try");
      return served;
    },
  },
  {
    what: "job runs: slots of one job a second, 20 processes",
    paper: writesPerKey / unitsOf("Job runs", "run a slot").write,
    because: "units of one key",
    within: 0.05,
    simulate: () => slotsPerSecond(20, 5),
  },
  {
    what: "tasks: claimed and done a second in one set, 16 workers",
    paper: writesPerKey / taskUnits,
    because: "units of one key",
    within: 0.1,
    simulate: () => tasksPerSecond(16, 5),
  },
  {
    what: "single flight: hits of one value a second, 60 processes",
    paper: readsPerKey / unitsOf("Single flight", "a hit").read,
    because: "units of one key",
    within: 0.05,
    simulate: () => hitsPerSecond(60, 3),
  },
  {
    what: "semaphore: holders with heartbeats, leases of 30 s",
    paper: holdersOf(30),
    because: "the square of the holders: a renewal is billed for all seats",
    within: 0.15,
    simulate: () => largest(150, 260, async (n) => isServed((await keepPermits(n, 30_000)).throttled)),
  },
  {
    what: "semaphore: holders with heartbeats, leases of 3 minutes",
    paper: holdersOf(180),
    because: "the same",
    within: 0.15,
    simulate: () => largest(400, 600, async (n) => isServed((await keepPermits(n, 180_000)).throttled)),
  },
  {
    what: "fair lock: write units a second of a line of 100 that wait",
    paper: lineUnits(100),
    because: "the square of the waiters: a check-in is billed for all tickets",
    within: 0.2,
    simulate: () => unitsOfLine(100, 300),
  },
  {
    what: "lock: waiting processes on one key, without order",
    paper: readsPerKey / lookUnitsPerSecond,
    because: "looks, each of half a unit",
    within: 0.15,
    simulate: async () =>
      hundredth *
      (await largest(150, 450, async (n) => isServed(await throttledLooks(n, divided(hundredth))))),
  },
  {
    what: "leases with heartbeats of 30 s in a new table, different keys",
    paper: (writesPerTable * 30) / renewalsPerLease,
    because: "units of a new table on demand",
    within: 0.1,
    simulate: async () =>
      hundredth *
      (await largest(300, 600, async (n) =>
        isServed((await keepLeases(n, 30_000, divided(hundredth))).throttled),
      )),
  },
];

/** A figure with what the simulation has found. */
interface Compared extends Figure {
  readonly simulated: number;
  readonly agrees: boolean;
}

export async function compare(figure: Figure): Promise<Compared> {
  const simulated = await figure.simulate();
  const { paper, within } = figure;
  const agrees =
    within === undefined ? simulated > 0 && simulated <= paper : Math.abs(simulated / paper - 1) <= within;
  return { ...figure, simulated, agrees };
}

/** The command that writes them, as the marks in the pages say. */
export const command = "npm run bench -- scale";

/** The table of docs/scale.md. */
export function scaleReport(compared: readonly Compared[]): string {
  const rows = compared.map(({ what, paper, simulated, because }) => [
    what,
    shown(paper),
    shown(simulated),
    because,
  ]);
  return table([["what", "on paper", "simulated", "the limit"], ...rows]);
}

/** Two figures that tell something, or three from a hundred on. */
function shown(value: number): string {
  return Number(value.toPrecision(value < 100 ? 2 : 3)).toLocaleString("en-US");
}

/** The table of docs/primitives/fair-lock.md. */
export async function handOverReport(): Promise<string> {
  const cells = ({ requests, idleMs }: HandOver): string[] => [shown(requests), shown(idleMs)];
  const rows: string[][] = [];
  for (const waiters of [2, 10, 50]) {
    const constant = await handOver(waiters, "constant");
    rows.push([String(waiters), ...cells(constant), ...cells(await handOver(waiters, "random"))]);
  }
  const head = ["holds of 1 s: requests", "idle ms, p50", "of 1 s on average, at random", "idle ms, p50"];
  return table([["waiters", ...head], ...rows]);
}

/** Simulates every figure. */
export async function compareAll(): Promise<Compared[]> {
  const compared: Compared[] = [];
  for (const figure of figures) compared.push(await compare(figure));
  return compared;
}

/** Simulates every figure of docs/scale.md, prints them, and writes the tables of pages anew. */
export async function writeScale(): Promise<void> {
  const compared = await compareAll();
  for (const { what, paper, simulated, agrees } of compared) {
    console.log(`${what}: ${Math.round(paper)} on paper, ${Math.round(simulated)} simulated`);
    if (!agrees) process.exitCode = 1;
  }
  await writeGenerated("scale.md", scaleReport(compared), command);
  await writeGenerated("primitives/fair-lock.md", await handOverReport(), command);
}
