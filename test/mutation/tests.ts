/** The tests as one process of vitest runs them on the mutants: it is ended when it does not come back. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { activeFile, type Note, notesFile, type Plan, planFile } from "./plan.ts";
import { root } from "./scope.ts";

/** A worker that switches no mutant for so long is in a loop without end. Work beside it can stop one for 10 s. */
const silenceMs = 60_000;
/** What the start of a worker may take on a busy machine. */
const startMs = 600_000;

export interface Played {
  readonly notes: readonly Note[];
  /** What was active in which test when the process had to be ended, or ended by itself. */
  readonly stuck: { readonly mutant: string; readonly test: string } | undefined;
}

/** Plays what is planned; each note is also told as soon as it is seen. */
export async function play(plan: Plan, tell: (notes: readonly Note[]) => void): Promise<Played> {
  rmSync(notesFile, { force: true });
  writeFileSync(activeFile, "");
  writeFileSync(planFile, JSON.stringify(plan));
  const config = join(root, "test/mutation/vitest.config.ts");
  const child = spawn(
    process.execPath,
    [join(root, "node_modules/vitest/vitest.mjs"), "run", "--tags-filter=!long", "--config", config],
    { cwd: root, stdio: ["ignore", "pipe", "pipe"] },
  );
  const output = lastOutput(child);
  const notes: Note[] = [];
  let lastSign = "";
  let since = performance.now();
  let isSilent = false;
  const look = (): void => {
    const lines = existsSync(notesFile) ? readFileSync(notesFile, "utf8").split("\n").slice(0, -1) : [];
    const fresh = lines.slice(notes.length).map((line): Note => JSON.parse(line));
    notes.push(...fresh);
    tell(fresh);
    const sign = `${lines.length} ${statSync(activeFile).mtimeMs}`;
    if (sign !== lastSign) since = performance.now();
    lastSign = sign;
    // Nothing is active before the first test.
    if (
      plan.judging === undefined ||
      performance.now() - since < (statSync(activeFile).size === 0 ? startMs : silenceMs)
    )
      return;
    isSilent = true;
    child.kill("SIGKILL");
  };
  const timer = setInterval(look, 1_000);
  const code = await new Promise<number | null>((resolve) => child.on("exit", resolve));
  clearInterval(timer);
  look();
  const [mutant = "", test = ""] = readFileSync(activeFile, "utf8").trim().split(" ");
  if (notes.length === 0 && mutant === "") throw new Error(`the tests do not start: ${output()}`);
  return { notes, stuck: isSilent || code === null ? { mutant, test } : undefined };
}

function lastOutput(child: ChildProcess): () => string {
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (text: Buffer) => {
      output = (output + text).slice(-4_000);
    });
  return () => output;
}
