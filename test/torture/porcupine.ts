/** Porcupine, a second checker of the journals: test/torture/porcupine is a program of its own, in Go. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const program = join(import.meta.dirname, "porcupine");
const run = promisify(execFile);

/** What Porcupine has found. */
export interface SecondOpinion {
  readonly isRight: boolean;
  /** A line for each lock and register that is wrong, and one for all. */
  readonly text: string;
}

/** Whether Go is installed here. */
export async function hasGo(): Promise<boolean> {
  try {
    await run("go", ["version"]);
    return true;
  } catch {
    return false; // Ignored: without Go there is no second checker.
  }
}

/**
 * Judges the journals in a folder. The first time it needs the network, for the module.
 *
 * Rejects where the program cannot be built or cannot read the journals.
 */
export async function judgeByPorcupine(folder: string): Promise<SecondOpinion> {
  const binary = join(folder, "porcupine");
  await run("go", ["build", "-o", binary, "."], { cwd: program });
  try {
    return { isRight: true, text: (await run(binary, [folder])).stdout.trim() };
  } catch (error) {
    const { code, stdout } = error as { readonly code?: unknown; readonly stdout?: string };
    // 1: something is wrong; 3: something took too long to judge.
    if (code !== 1 && code !== 3) throw error;
    return { isRight: false, text: String(stdout).trim() };
  }
}
