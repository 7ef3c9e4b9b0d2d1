// Plays commands in a shell, one after the other, and keeps what they print and when.

import { spawn } from "node:child_process";
import type { PrintedLine } from "./terminal-picture.ts";

/** One line that is typed. */
export interface Step {
  readonly command: string;
  /** Whether the next line is typed while it still runs; what it prints is not shown. */
  readonly inBackground?: boolean;
  /** How long to wait before the next line, in milliseconds. */
  readonly pauseMs?: number;
}

const typingMs = 600;

/** Plays the steps with the variables set, and gives what a terminal would show. */
export async function record(
  steps: readonly Step[],
  env: NodeJS.ProcessEnv,
): Promise<readonly PrintedLine[]> {
  const lines: PrintedLine[] = [];
  const startedAt = performance.now();
  const background: Promise<void>[] = [];
  const print = (text: string): number => lines.push({ text, at: performance.now() - startedAt });
  for (const { command, inBackground = false, pauseMs = 800 } of steps) {
    print(`\u001b[1m$\u001b[22m ${command}${inBackground ? " &" : ""}`);
    await pause(typingMs);
    const done = play(command, env, inBackground ? () => 0 : print);
    if (inBackground) background.push(done);
    else await done;
    await pause(pauseMs);
    if (!inBackground) print("");
  }
  await Promise.all(background);
  return lines;
}

async function play(command: string, env: NodeJS.ProcessEnv, print: (line: string) => number): Promise<void> {
  const child = spawn("bash", ["-c", command], { env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream.on("data", (chunk: Buffer) => {
      const parts = (rest + chunk.toString("utf8")).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) print(line);
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${command} has ended with ${code}`);
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
