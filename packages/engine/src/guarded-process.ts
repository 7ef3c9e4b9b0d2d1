// A child process that ends with this one, however this one ends, SIGKILL included.

import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { throwMistake } from "./mistakes.ts";

/** The time that a process has between SIGTERM and SIGKILL. DynamoDB Local takes about 0.3 s. */
const graceMs = 2000;

/** Enough for the last lines of a Java stack trace. */
const keptOutput = 8192;

/**
 * A process that ends with this one, however this one ends.
 *
 * SIGKILL leaves a parent no chance to end its children, but the kernel still closes its pipes. So the shell puts a
 * reader on pipe 3, whose other end is ours alone, and then becomes the engine itself (exec: the pid is the engine's).
 * End of file means that we are gone, in whatever way, and the reader kills its process group: the engine and itself.
 * That needs no signal handler here, so no other handler is disturbed, and a process that handles SIGINT in order to
 * release its leases still has its engine while it does.
 *
 * The group is the engine's own (`detached`), so the reader's kill reaches nothing else, and a terminal's Ctrl-C
 * reaches us and not the engine.
 */
const guard = '{ read -r line; kill -KILL 0; } <&3 >/dev/null 2>&1 & exec "$@" 3<&-';

/** A child process that ends with this one, at the latest. */
export interface GuardedProcess {
  readonly pid: number | undefined;
  /** True once the process has ended and all its output is in, or it could not be spawned. */
  readonly ended: boolean;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  /** The last output, standard output and error together. */
  output(): string;
  /** Lets the event loop end while the process runs. */
  unref(): void;
  /** SIGTERM, then SIGKILL after a while. Resolves when the process is gone. Further calls give the same promise. */
  stop(): Promise<void>;
}

/** Spawns a process whose life is bounded by this one's. */
export function spawnGuarded(
  file: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): GuardedProcess {
  const child =
    process.platform === "win32"
      ? spawn(file, args, { ...options, stdio: ["ignore", "pipe", "pipe"] })
      : spawn("/bin/sh", ["-c", guard, "sh", file, ...args], {
          ...options,
          stdio: ["ignore", "pipe", "pipe", "pipe"],
          detached: true,
        });

  let tail = "";
  const keep = (text: string): void => {
    tail = (tail + text).slice(-keptOutput);
  };
  child.stdout?.setEncoding("utf8").on("data", keep);
  child.stderr?.setEncoding("utf8").on("data", keep);

  const killNow = (): void => killGroup(child);
  process.on("exit", killNow);
  let ended = false;
  child.once("close", () => {
    ended = true;
  });
  const exited = new Promise<void>((resolve) => {
    const finish = (): void => {
      process.off("exit", killNow);
      resolve();
    };
    child.once("exit", () => {
      killNow();
      finish();
    });
    child.on("error", (error) => {
      keep(error.message);
      if (child.pid !== undefined) return;
      ended = true;
      finish();
    });
  });

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    child.ref();
    child.kill("SIGTERM");
    const timer = setTimeout(killNow, graceMs);
    await exited;
    clearTimeout(timer);
  };

  return {
    pid: child.pid,
    get ended() {
      return ended;
    },
    exited,
    output: () => tail,
    unref: () => {
      child.unref();
      for (const pipe of child.stdio) if (pipe instanceof Socket) pipe.unref();
    },
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** Kills the engine, the guard's reader, and everything that a launcher script has started in between. */
function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill("SIGKILL");
    else process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    throwMistake(error);
    // Nothing of the group is left.
  }
}
