/**
 * How far each primitive should go on one key: by DynamoDB's published limits, the units that docs/requests.md promises and
 * the time of an answer.
 */
import { documentedOperations } from "../operations/index.ts";
import { table } from "./markdown.ts";

/** Units a second that a key takes, as documented, and those that a new table on demand takes. */
const [writesPerKey, readsPerKey, writesPerTable] = [1_000, 3_000, 4_000];
/** From a request to its answer, within a region. */
const roundTripMs = 10;
const roundTripsPerSecond = 1_000 / roundTripMs;

/** What a seat, and a ticket, take of their items, with an owner as long as those by default. */
export const seatBytes = 185;
export const ticketBytes = 110;
const unitBytes = 1_024;
/** A heartbeat renews each third of a lease. */
const renewalsPerLease = 3;

/** The units of an operation, as docs/requests.md promises them. */
function unitsOf(of: string, operation: string): { readonly write: number; readonly read: number } {
  const found = documentedOperations.find((one) => one.of === of && one.name === operation);
  const { writeUnits: write, readUnits: read } = found ?? {};
  if (write === undefined || read === undefined)
    throw new Error(`docs/requests.md has no units of "${operation}" of ${of}`);
  return { write, read };
}

/** Each renewal is billed for all seats, so what a semaphore takes grows with the square of its holders. */
function holdersOf(leaseSeconds: number): number {
  return Math.sqrt((writesPerKey * leaseSeconds * unitBytes) / (renewalsPerLease * seatBytes));
}

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

function lineUnits(waiters: number): number {
  return waiters * ticketWritesPerSecond * Math.ceil((waiters * ticketBytes) / unitBytes);
}

const taskUnits = unitsOf("Tasks", "claim 3 waiting tasks").write / 3 + unitsOf("Tasks", "succeed").write;

const figures: readonly (readonly [what: string, onPaper: number, because: string])[] = [
  [
    "lock: acquisitions and releases a second, of all callers",
    roundTripsPerSecond / 2,
    "two answers, one after the other",
  ],
  [
    "fair lock: hand-overs a second",
    roundTripsPerSecond / 3,
    "a release, a look of the next caller, an acquisition; the pause before that look comes on top",
  ],
  [
    "group: acquisitions and releases a second, of all callers that share a lock",
    roundTripsPerSecond / 3,
    "a transaction takes as long as two writes; conflicts come on top",
  ],
  [
    "lock: tries a second while it is held",
    writesPerKey / unitsOf("Lock", "try a held lock").write,
    "units of one key",
  ],
  [
    "job runs: slots of one job a second",
    writesPerKey / unitsOf("Job runs", "run a slot").write,
    "units of one key",
  ],
  ["tasks: claimed and done a second in one set", writesPerKey / taskUnits, "units of one key"],
  [
    "single flight: hits of one value a second",
    readsPerKey / unitsOf("Single flight", "a hit").read,
    "units of one key",
  ],
  [
    "semaphore: holders with heartbeats, leases of 30 s",
    holdersOf(30),
    "the square of the holders: a renewal is billed for all seats",
  ],
  ["semaphore: holders with heartbeats, leases of 3 minutes", holdersOf(180), "the same"],
  [
    "fair lock: write units a second of a line of 100 that wait",
    lineUnits(100),
    "the square of the waiters: a check-in is billed for all tickets",
  ],
  [
    "lock: waiting processes on one key, without order",
    readsPerKey / lookUnitsPerSecond,
    "looks, each of half a unit",
  ],
  [
    "leases with heartbeats of 30 s in a new table, different keys",
    (writesPerTable * 30) / renewalsPerLease,
    "units of a new table on demand",
  ],
];

/** The table of docs/scale.md. */
export function scaleReport(): string {
  const rows = figures.map(([what, onPaper, because]) => [what, shown(onPaper), because]);
  return table([["what", "on paper", "the limit"], ...rows]);
}

/** Two figures that tell something, or three from a hundred on. */
function shown(value: number): string {
  return Number(value.toPrecision(value < 100 ? 2 : 3)).toLocaleString("en-US");
}
