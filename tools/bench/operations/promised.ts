/** What docs/requests.md promises of one operation, and how the operation is performed to be counted. */
import type { LeaseClient, LeaseClientOptions } from "@leasehold/client";
import type { StoppedProcess } from "./stopped-process.ts";

/** Where operations are performed. */
export interface OperationSite {
  /** A client, and so a process, of its own; each call of `counted` sees what all of them sent. */
  client(options?: LeaseClientOptions): LeaseClient;
  /** A process whose clock stands still, `agoMs` ago. @default 0 */
  stopped(agoMs?: number): StoppedProcess;
  /** A key that nothing has used. */
  newKey(): string;
  /** Performs the operation itself; what goes before it does not count. */
  counted(perform: Counted): Promise<unknown>;
}

/** What is counted. */
type Counted = () => Promise<unknown>;

/** An operation whose requests docs/requests.md promises. */
export interface DocumentedOperation {
  readonly name: string;
  /** What it belongs to. */
  readonly of: string;
  /** The page of that, below the repository's root. */
  readonly page: string;
  /** As `listedRequests` writes them. */
  readonly requests: string;
  /** Of items up to 1 KB; undefined where an item is larger, and is billed for its size. */
  readonly writeUnits: number | undefined;
  readonly readUnits: number | undefined;
  /** Whether it writes under a key that is not one of `newKey`: the registry's. @default false */
  readonly writesElsewhere?: true;
  perform(site: OperationSite): Promise<unknown>;
}

/** Operations stand in groups, one for each page. */
export type Promised = Omit<DocumentedOperation, "of" | "page">;

/** An operation: `arrange` makes what it needs with a new key, and gives what is counted. Leases that it leaves have no heartbeat. */
export function promised(
  name: string,
  requests: string,
  [writeUnits, readUnits]: readonly [writeUnits?: number, readUnits?: number],
  arrange: (site: OperationSite, key: string) => Counted | Promise<Counted>,
): Promised {
  const perform: Promised["perform"] = async (site) => site.counted(await arrange(site, site.newKey()));
  return { name, requests, writeUnits, readUnits, perform };
}

export const hourMs = 3_600_000;

/** A client of a process that died an hour ago: its leases have ended, and were not released. */
export function deadClient({ stopped }: OperationSite, options?: LeaseClientOptions): LeaseClient {
  return stopped(hourMs).client(options);
}

/** Options of a holder that keeps its lease through every wait that is counted. */
export const held = { leaseDurationMs: 3 * hourMs } as const;

/** The same owner, once more. */
export const again = { owner: "worker", reentrant: true } as const;

/** A call while time passes in its process, whatever becomes of the call; and then what it leaves in the background. */
export function during(
  process: StoppedProcess,
  ms: number,
  call: () => Promise<unknown> = async () => undefined,
): Counted {
  return async () => {
    const ended = call().then(
      () => undefined,
      () => undefined,
    );
    await process.advance(ms);
    await ended;
    await process.settle();
  };
}
