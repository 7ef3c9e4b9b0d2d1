/** Whether Amazon's lock client for Java takes, gives back and takes over a lock here: ends with 1 where it does not. */
import { startEngine } from "@leasehold/engine";
import { javaClient, missingForJava } from "./contenders/java-client.ts";
import { createTables, placeAt } from "./place.ts";

const leaseDurationMs = 1_000;
const missing = await missingForJava();
if (missing === undefined) {
  await using engine = await startEngine();
  const place = placeAt(engine, await createTables(engine));
  const [first, second] = [1, 2].map(() => javaClient.open(place, { leaseDurationMs }));
  const lock = await first?.acquire("smoke");
  await lock?.release();
  await first?.acquire("smoke");
  const startedAt = performance.now();
  await second?.acquire("smoke");
  const tookMs = performance.now() - startedAt;
  place.dynamodb.destroy();
  const isFine = tookMs >= leaseDurationMs;
  console.log(
    `${javaClient.name}: took over after ${tookMs.toFixed(0)} ms, with a lease of ${leaseDurationMs} ms`,
  );
  if (!isFine) process.exitCode = 1;
} else {
  console.log(`${javaClient.name}: skipped, for it ${missing}`);
}
