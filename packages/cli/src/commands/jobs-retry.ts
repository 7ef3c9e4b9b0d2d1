import { command } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { duration, text, whole, yes } from "../flags.ts";
import { invoker } from "../jobs/invoke.ts";
import { jobRunsOf, slotIn } from "../jobs/job-flags.ts";
import { slotText, stateText } from "../jobs/run-view.ts";
import { runSlotCommand, SlotFailure } from "../jobs/slot-command.ts";
import { shown } from "../terminal/text.ts";
import { checkExecutable } from "../work/executable.ts";
import { endingBySignals } from "../work/run-child.ts";
import { checkGrace, childFlags } from "../work/supervision.ts";
import { agreed } from "./shared/intervention.ts";

const leaseMs = 30_000;

export default command({
  usage: "jobs retry JOB SLOT [flags] (--invoke FUNCTION | -- CMD [ARG…])",
  details: `
Runs a slot once more. CMD is run under the slot's own lease, with LEASEHOLD_SLOT: exit code 0 makes it a success, every
other code a failure with a remark. --invoke calls the job's Lambda function with { "scheduledTime": SLOT } and waits for it.
A slot that has used up its attempts needs a larger --max-attempts; one that has succeeded or was skipped needs --again.

  leasehold jobs retry daily-report 2026-11-21T08:00Z --max-attempts 4 -- ./report.sh`,
  writes: true,
  operands: [2, 2],
  child: "optional",
  flags: {
    "max-attempts": whole("attempts that the slot may have now (default 3)", { least: 1, most: 1_000 }),
    keep: duration("for how long runs are kept, as the job's code says (default 30d)"),
    invoke: text("FUNCTION", "the Lambda function that runs the job"),
    again: yes("also where it has succeeded or was skipped"),
    reason: text("TEXT", "with --again: why, the run's remark"),
    ...childFlags,
  },
  async run(call) {
    const { operands, flags, connect, terminal, child: commandLine, env } = call;
    const [job = "", given = ""] = operands;
    const slot = slotIn(given);
    if ((flags.invoke === undefined) === (commandLine === undefined)) {
      throw new UsageError("give either --invoke FUNCTION, or -- CMD");
    }
    checkGrace(flags, { leaseMs, heartbeat: true });
    if (commandLine !== undefined) checkExecutable(commandLine[0] ?? "", env);
    const connection = await connect();
    const runs = jobRunsOf(connection.client, job, flags);
    const run = await runs.get(slot);
    const name = `${slotText(slot)} UTC of ${shown(job)}`;
    terminal.say(run === undefined ? `${name} was never begun.` : `${name}: ${stateText(run)}.`);
    const isDone = run?.state === "succeeded" || run?.state === "skipped";
    if (isDone && !flags.again) {
      throw new CommandError(`${name} is ${run.state}: --again runs it all the same`, exitCodes.slotDone);
    }
    if (run?.exhausted) {
      const advice = `--max-attempts ${run.attempt + 1} allows another`;
      throw new CommandError(
        `${name} has had all of its ${run.attempt} attempts: ${advice}`,
        exitCodes.nothing,
      );
    }
    await agreed(call, { question: "Run it?" });
    if (isDone && !(await runs.takeBack(run, flags.reason))) {
      throw new CommandError(`${name} has changed in the meantime: look again`, exitCodes.lost);
    }
    if (flags.invoke !== undefined) {
      const invoke = await invoker(flags.invoke, connection, call.global);
      const failure = await invoke(slot);
      const state = (await runs.get(slot))?.state ?? "not recorded";
      terminal.say(`${name}: ${failure ?? "the function has ended"}; the run is ${state}.`);
      return failure === undefined && state === "succeeded" ? exitCodes.done : exitCodes.nothing;
    }
    const running = endingBySignals(call);
    try {
      await runs.run(
        slot,
        (context) =>
          runSlotCommand(running, call, { commandLine: commandLine ?? [], flags, leaseMs }, context),
        { signal: running.signal },
      );
    } catch (error) {
      if (!(error instanceof SlotFailure)) throw error;
      terminal.say(`${name}: ${error.message}.`);
      return running.exitCode() ?? error.exitCode;
    }
    terminal.say(`${name} has succeeded.`);
    return exitCodes.done;
  },
});
