import { FinalFailureError, type Task, TaskSet } from "@leasehold/jobs";
import { type Call, command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { choice, duration, whole } from "../flags.ts";
import { shown } from "../terminal/text.ts";
import type { Child } from "../work/child.ts";
import { checkExecutable } from "../work/executable.ts";
import { type EndingCall, endingBySignals, runChild } from "../work/run-child.ts";
import { checkGrace, childFlags, superviseChild } from "../work/supervision.ts";

const usualLeaseMs = 30_000;
const longestRemark = 1_000;

const flags = {
  concurrency: whole("how many tasks at a time (default 1)", { least: 1, most: 1_000 }),
  lease: duration("how long a claim lasts unless it is renewed (default 30s)"),
  until: choice(
    ["drained", "idle", "never"],
    "when it ends by itself (default drained: no task waits or runs)",
  ),
  "retry-after": duration("how long a task waits after it has failed (default: longer each time)"),
  "park-exit": whole("exit code of CMD after which another attempt is of no use: the task is parked", {
    least: 1,
    most: 255,
  }),
  ...childFlags,
};

type WorkCall = Call<typeof flags>;

export default command({
  usage: "tasks work SET [flags] -- CMD [ARG…]",
  details: `
Claims one task after the other and runs CMD for each: its payload, as JSON, is on stdin. Exit code 0 ends the task with
success, every other one is a failed attempt; the last line of stdout is the remark. CMD gets LEASEHOLD_TASK_ID,
LEASEHOLD_ATTEMPT, LEASEHOLD_KEY and LEASEHOLD_FENCING_TOKEN. A signal goes on to the children, and no more tasks are claimed.

  leasehold tasks work orders/today --concurrency 4 -- ./do-one.sh`,
  writes: true,
  operands: [1, 1],
  child: "required",
  flags,
  async run(call) {
    const { operands, connect, terminal, printer, child: commandLine = [], env } = call;
    const [set = ""] = operands;
    const { concurrency = 1, lease = usualLeaseMs, until = "drained" } = call.flags;
    checkGrace(call.flags, { leaseMs: lease, heartbeat: true });
    checkExecutable(commandLine[0] ?? "", env);
    const { client } = await connect();
    const retryAfterMs = call.flags["retry-after"];
    const tasks = new TaskSet(client, set, { leaseDurationMs: lease });
    const running = endingBySignals(call);
    const summary = await tasks.process((task) => runTask(call, running, set, task), {
      concurrency,
      until,
      signal: running.signal,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
    const { succeeded, failed, parked, returned, lost } = summary;
    printer.document("tasksWorked", { set, ...summary }, () => [
      `succeeded ${succeeded}   failed ${failed}   parked ${parked}   given back ${returned}   lost ${lost}`,
    ]);
    terminal.sayIf(
      running.signal.aborted ? `leasehold: interrupted; ${shown(set)} may have more tasks` : undefined,
    );
    return running.exitCode() ?? (failed + parked + lost > 0 ? exitCodes.nothing : exitCodes.done);
  },
});

/** Returns the remark of a success; throws for a failure. */
async function runTask(call: WorkCall, running: EndingCall, set: string, task: Task): Promise<string> {
  const { flags: given, child: commandLine = [], env, clock, terminal } = call;
  const added = {
    LEASEHOLD_KEY: set,
    LEASEHOLD_TASK_ID: task.id,
    LEASEHOLD_ATTEMPT: String(task.attempt),
    LEASEHOLD_FENCING_TOKEN: String(task.fencingToken),
  };
  const name = `${set} ${task.id}`;
  const leaseMs = given.lease ?? usualLeaseMs;
  let last = "";
  const say = (line: string): void => terminal.complain(line);
  const end = await runChild(
    running,
    { commandLine, env: { ...env, ...added }, fd: given.fd, isPiped: true },
    async (child) => {
      const read = readLines(child, (line) => {
        if (line.trim() !== "") last = line;
        terminal.complain(`${shown(task.id)}: ${shown(line)}`);
      });
      // No error if a child does not read its payload.
      child.stdin?.on("error", () => {});
      child.stdin?.end(task.payload === undefined ? "" : `${JSON.stringify(task.payload)}\n`);
      const ended = await superviseChild(child, {
        key: name,
        lease: task,
        leaseMs,
        flags: given,
        clock,
        say,
      });
      await read;
      return ended;
    },
  );
  const remark = last.slice(0, longestRemark);
  if (end.code === 0 && !end.isTooLong) return remark;
  if (running.signal.aborted) throw running.signal.reason;
  const reason = `the command exited ${end.code}${remark === "" ? "" : `: ${remark}`}`;
  throw end.code === given["park-exit"] ? new FinalFailureError(reason) : new Error(reason);
}

/** Reads a child's stdout line by line; resolves at its end. */
async function readLines(child: Child, onLine: (line: string) => void): Promise<void> {
  let rest = "";
  for await (const chunk of child.stdout?.setEncoding("utf8") ?? []) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  }
  if (rest !== "") onLine(rest);
}
