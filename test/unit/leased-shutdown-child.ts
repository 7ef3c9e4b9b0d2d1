/** A process that runs one invocation, and tells its parent what it sees; the parent sends SIGTERM. */
import { LeaseClient } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";

const { behaviour } = JSON.parse(process.argv[2] ?? "{}") as { behaviour: "stops" | "deaf" | "idle" };
const tell = (message: string): void => void process.send?.(message);

const client = new LeaseClient({
  store: new MemoryLeaseStore(),
  onEvent: (event) => tell(event.type === "released" ? `released ${event.confirmed}` : event.type),
});
const app = leased({ client, key: "job" }, async (_event: unknown, _context, lock) => {
  if (behaviour === "idle") return;
  lock.signal.addEventListener("abort", () => tell(`aborted by ${lock.signal.reason.reason}`));
  tell("running");
  await new Promise<void>((resolve) => {
    if (behaviour === "stops") lock.signal.addEventListener("abort", () => setTimeout(resolve, 20));
  });
});
// Keeps the process alive as Lambda's runtime does.
setInterval(() => undefined, 1_000);
await app({}, { functionName: "job", awsRequestId: "1" } as Context);
tell("idle");
