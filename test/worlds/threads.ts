import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";

/**
 * The code of a thread as one script. tsx runs the other sources of this program; it would give each closure its name when
 * it is made, which a simulation has no use for and feels.
 */
export async function bundleThread(entry: URL): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(entry)],
    bundle: true,
    write: false,
    platform: "node",
    // A script that is no file finds packages from the working directory; a module of that kind finds none.
    format: "cjs",
    target: "node22",
    conditions: ["leasehold-source"],
    // The client loads it; no simulation uses it.
    external: ["@aws-sdk/*"],
    logLevel: "error",
  });
  return outputFiles[0]?.text ?? "";
}

/** Has tasks done by as many threads as there are processors, whichever is free. */
export async function share<Task extends object, Result>(
  script: string,
  tasks: Iterable<Task>,
  onResult: (task: Task, result: Result) => void,
  workerData?: object,
): Promise<void> {
  const waiting = tasks[Symbol.iterator]();
  const work = async (): Promise<void> => {
    const thread = new Worker(script, { eval: true, workerData });
    try {
      for (let next = waiting.next(); !next.done; next = waiting.next())
        onResult(next.value, await answerOf<Result>(thread, next.value));
    } finally {
      await thread.terminate();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}

/** Asks a thread. Rejects where that ends by an error that nobody expects, such as a rejection that nobody handles. */
function answerOf<Answer>(thread: Worker, asked: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    thread.removeAllListeners();
    thread.once("message", resolve);
    thread.once("error", (cause: Error) =>
      reject(new Error(`${JSON.stringify(asked)}: ${cause.message}`, { cause })),
    );
    thread.postMessage(asked);
  });
}
