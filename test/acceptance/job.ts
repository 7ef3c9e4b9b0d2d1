import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import type { AcceptanceEvent, AcceptanceOutcome } from "../../functions/acceptance/handler.ts";
import { type Check, checked } from "./check.ts";
import type { Deployment } from "./deployment.ts";

const holdMs = 2_000;

/** Triggers the singleton job as its schedule would, twice where it matters. Some 10 seconds. */
export async function checkJob({ functionName }: Deployment, signal: AbortSignal): Promise<Check[]> {
  const lambda = new LambdaClient({});
  const trigger = async (scheduledTime: string, input: AcceptanceEvent["input"] = {}) => {
    const Payload = JSON.stringify({
      job: "acceptance",
      scheduledTime,
      executionId: crypto.randomUUID(),
      input,
    });
    const answer = await lambda.send(new InvokeCommand({ FunctionName: functionName, Payload }), {
      abortSignal: signal,
    });
    const text = Buffer.from(answer.Payload ?? []).toString("utf8");
    if (answer.FunctionError !== undefined) throw new Error(`${functionName} failed: ${text}`);
    return JSON.parse(text) as AcceptanceOutcome;
  };
  // Of this run, and before the next: a slot that is done closes all that are earlier.
  const slot = new Date(Math.floor(Date.now() / 1000) * 1000);
  const next = new Date(slot.getTime() + 1_000);
  let fencingToken = 0;
  try {
    return [
      await checked(
        "two triggers of one scheduled time, at once",
        "1 ran, 1 skipped",
        async () => {
          const both = [trigger(slot.toISOString(), { holdMs }), trigger(slot.toISOString(), { holdMs })];
          const outcomes = await Promise.all(both);
          for (const outcome of outcomes) if (outcome.result === "ran") fencingToken = outcome.fencingToken;
          const count = (...results: string[]) =>
            outcomes.filter(({ result }) => results.includes(result)).length;
          // The one that starts cold may come after the other's end: then its slot is done.
          const [ran, skipped] = [count("ran"), count("skipped", "doneBefore")];
          return { measured: `${ran} ran, ${skipped} skipped`, holds: ran === 1 && skipped === 1 };
        },
        signal,
      ),
      await checked(
        "the same scheduled time, later",
        "doneBefore",
        async () => {
          const { result } = await trigger(slot.toISOString());
          return { measured: result, holds: result === "doneBefore" };
        },
        signal,
      ),
      await checked(
        "the next scheduled time",
        "ran, next fencing token",
        async () => {
          const outcome = await trigger(next.toISOString());
          const isNext = outcome.result === "ran" && outcome.fencingToken === fencingToken + 1;
          return { measured: `${outcome.result}${isNext ? ", next fencing token" : ""}`, holds: isNext };
        },
        signal,
      ),
    ];
  } finally {
    lambda.destroy();
  }
}
