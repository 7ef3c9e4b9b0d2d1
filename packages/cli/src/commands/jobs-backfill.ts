import type { JobRuns, MissedQuery } from "@leasehold/jobs";
import { type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { exitCodes, messageOf, UsageError } from "../exit-codes.ts";
import { text, whole, yes } from "../flags.ts";
import { invoker } from "../jobs/invoke.ts";
import { jobRunsOf, limitFlags, rangeFlags, rangeOf, scheduleFlags, scheduleOf } from "../jobs/job-flags.ts";
import { slotText } from "../jobs/run-view.ts";
import { runSlotCommand } from "../jobs/slot-command.ts";
import { shown } from "../terminal/text.ts";
import { serviceNow } from "../view/service-time.ts";
import { checkExecutable } from "../work/executable.ts";
import { endingBySignals } from "../work/run-child.ts";
import { checkGrace, childFlags } from "../work/supervision.ts";
import { agreed } from "./shared/intervention.ts";

const leaseMs = 30_000;
const usualLimit = 100;

const flags = {
  ...scheduleFlags,
  ...rangeFlags,
  invoke: text("FUNCTION", "the Lambda function that runs the job"),
  limit: whole(`at most so many slots (default ${usualLimit})`, { least: 1 }),
  "stop-on-failure": yes("run no later slot when one has failed"),
  ...limitFlags,
  ...childFlags,
};

type BackfillCall = Call<typeof flags>;

export default command({
  usage: "jobs backfill JOB [flags] (--invoke FUNCTION | -- CMD [ARG…])",
  details: `
Runs the slots that a job has missed, oldest first and one after the other. CMD gets LEASEHOLD_SLOT; --invoke calls the Lambda
function with { "scheduledTime": SLOT }. Several hosts may do it at once: they share the slots. --dry-run lists them.

  leasehold jobs backfill daily-report --schedule 'cron(0 8 ? * MON-FRI *)' --since 3d -- ./report.sh`,
  writes: true,
  operands: [1, 1],
  child: "optional",
  flags,
  async run(call) {
    const { operands, connect, terminal, child: commandLine, env, global } = call;
    const [job = ""] = operands;
    const { limit = usualLimit } = call.flags;
    const isCommand = commandLine !== undefined;
    if (!global["dry-run"] && (call.flags.invoke === undefined) !== isCommand) {
      throw new UsageError("give either --invoke FUNCTION, or -- CMD");
    }
    checkGrace(call.flags, { leaseMs, heartbeat: true });
    if (isCommand) checkExecutable(commandLine[0] ?? "", env);
    const connection = await connect();
    const schedule = await scheduleOf(connection.client, job, call.flags);
    const runs = jobRunsOf(connection.client, job, call.flags);
    const query = { schedule, ...rangeOf(call.flags, serviceNow(connection.client)) };
    const slots = await slotsToRun(runs, query, limit);
    for (const slot of slots)
      global["dry-run"] ? terminal.print(slot) : terminal.say(`  ${slotText(slot)} UTC`);
    terminal.say(
      `${slots.length} missed slots of ${shown(job)} to run${slots.length === limit ? " (--limit)" : ""}`,
    );
    if (global["dry-run"] || slots.length === 0) return exitCodes.done;
    await agreed(call, { question: "Run them?" });
    return isCommand
      ? await byCommand(call, runs, { ...query, limit }, commandLine)
      : await byFunction(call, connection, runs, slots);
  },
});

/** Without the slots whose attempts are used up. */
async function slotsToRun(runs: JobRuns, query: MissedQuery, limit: number): Promise<readonly string[]> {
  const slots: string[] = [];
  for await (const { slot, run } of runs.missed(query)) {
    if (run?.exhausted) continue;
    slots.push(slot);
    if (slots.length >= limit) break;
  }
  return slots;
}

async function byCommand(
  call: BackfillCall,
  runs: JobRuns,
  query: MissedQuery & { readonly limit: number },
  commandLine: readonly string[],
): Promise<number> {
  const { terminal } = call;
  const running = endingBySignals(call);
  const report = await runs.backfill(
    { ...query, stopOnFailure: call.flags["stop-on-failure"], signal: running.signal },
    async (context) => {
      terminal.say(`leasehold: running ${slotText(context.slot)} UTC`);
      await runSlotCommand(running, call, { commandLine, flags: call.flags, leaseMs }, context);
    },
  );
  for (const { slot, error } of report.failed) {
    terminal.complain(`${slotText(slot)} UTC: ${shown(messageOf(error))}`);
  }
  const counts = `${report.succeeded.length} succeeded, ${report.failed.length} failed, ${report.left.length} left`;
  terminal.say(`${counts}${report.complete ? "" : "; not all of the range was gone through"}`);
  return running.exitCode() ?? (report.failed.length > 0 ? exitCodes.nothing : exitCodes.done);
}

async function byFunction(
  call: BackfillCall,
  connection: Connection,
  runs: JobRuns,
  slots: readonly string[],
): Promise<number> {
  const { terminal, signal, flags: given } = call;
  const invoke = await invoker(given.invoke ?? "", connection, call.global);
  let failed = 0;
  for (const slot of slots) {
    signal.throwIfAborted();
    const failure = await invoke(slot);
    const state = (await runs.get(slot))?.state ?? "not recorded";
    const isDone = failure === undefined && state === "succeeded";
    terminal.say(`${slotText(slot)} UTC: ${failure ?? state}`);
    if (isDone) continue;
    failed += 1;
    if (given["stop-on-failure"]) break;
  }
  return failed > 0 ? exitCodes.nothing : exitCodes.done;
}
