/** A process that runs one invocation, and tells its parent what it sees; the parent sends SIGTERM. */
import { LeaseClient, type LeaseError, type LeaseStore } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { FairLock, fair } from "../../packages/client/src/entries/fair.ts";

type Behaviour = "stops" | "deaf" | "idle" | "waits";
const { behaviour } = JSON.parse(process.argv[2] ?? "{}") as { behaviour: Behaviour };
const tell = (message: string): void => void process.send?.(message);

/** A table that is a network away, and tells how many wait once a write has changed that. */
class FarStore extends MemoryLeaseStore {
  #waiting = 0;

  override async update(...args: Parameters<LeaseStore["update"]>): ReturnType<LeaseStore["update"]> {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const result = await super.update(...args);
    const { waiting } = await new FairLock(watcher, "job").inspect();
    if (waiting.length !== this.#waiting) tell(`${waiting.length} waiting`);
    this.#waiting = waiting.length;
    return result;
  }
}

const store = new FarStore();
const watcher = new LeaseClient({ store });
const client = new LeaseClient({
  store,
  onEvent: (event) => tell(event.type === "released" ? `released ${event.confirmed}` : event.type),
});
if (behaviour === "waits") await new LeaseClient({ store }).acquire("job");
const options = { client, key: "job", whenHeld: "wait", order: fair() } as const;
const app = leased(options, async (_event: unknown, _context, lock) => {
  if (behaviour === "idle") return;
  lock.signal.addEventListener("abort", () => tell(`aborted by ${lock.signal.reason.reason}`));
  tell("running");
  await new Promise<void>((resolve) => {
    if (behaviour === "stops") lock.signal.addEventListener("abort", () => setTimeout(resolve, 20));
  });
});
// Keeps the process alive as Lambda's runtime does.
setInterval(() => undefined, 1_000);
await app({}, { functionName: "job", awsRequestId: "1" } as Context).catch((error: LeaseError) =>
  tell(`rejected by ${error.code}`),
);
tell("idle");
