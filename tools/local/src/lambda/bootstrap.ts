/**
 * The runtime client: what runs inside an execution environment and calls the handler.
 *
 * It talks to the tool over the channel of child processes. Plain Node starts it from this source: so it imports nothing
 * of the tool but types, and its own are erasable.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Delivery, RuntimeMessage } from "./sandbox.ts";

type Handler = (event: unknown, context: object) => unknown;

const environment = { ...process.env };
const setting = (name: string): string => environment[name] ?? "";

/** Whether an invocation is under way, or the code is still loading. */
let isBusy = true;

/** A problem of the function's own making that has a name in Lambda. */
function runtimeError(name: string, message: string): Error {
  const error = new Error(message);
  error.name = `Runtime.${name}`;
  return error;
}

/** Resolves when it is written: what ends right after it is heard all the same. */
function tell(message: RuntimeMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, () => resolve());
  });
}

function tellError(error: unknown, isLast: boolean): Promise<void> {
  const payload = JSON.stringify(describe(error));
  console.error(payload);
  return tell({ payload, functionError: "Unhandled", isLast });
}

function describe(error: unknown): { errorType: string; errorMessage: string; trace: string[] } {
  if (!(error instanceof Error)) {
    return { errorType: typeof error, errorMessage: String(error), trace: [] };
  }
  return {
    errorType: String(error.name),
    errorMessage: String(error.message),
    trace: String(error.stack ?? "").split("\n"),
  };
}

async function loadHandler(): Promise<Handler> {
  const text = setting("_HANDLER");
  const [, file = "", exported = ""] = /^(.+)\.(\w+)$/.exec(text) ?? [];
  const path = join(setting("LAMBDA_TASK_ROOT"), file);
  const extension = [".js", ".mjs", ".cjs"].find((one) => existsSync(path + one)) ?? ".js";
  const module = (await import(pathToFileURL(path + extension).href)) as Record<string, unknown>;
  // What Node does not recognize as an export of a CommonJS file is in the default export.
  const handler = module[exported] ?? (module.default as Record<string, unknown> | undefined)?.[exported];
  if (typeof handler !== "function") throw new Error(`${text} is undefined or not exported`);
  return handler as Handler;
}

function contextOf({ requestId, deadlineMs, functionArn }: Delivery): object {
  return {
    callbackWaitsForEmptyEventLoop: true,
    awsRequestId: requestId,
    functionName: setting("AWS_LAMBDA_FUNCTION_NAME"),
    functionVersion: setting("AWS_LAMBDA_FUNCTION_VERSION"),
    invokedFunctionArn: functionArn,
    memoryLimitInMB: setting("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"),
    logGroupName: setting("AWS_LAMBDA_LOG_GROUP_NAME"),
    logStreamName: setting("AWS_LAMBDA_LOG_STREAM_NAME"),
    getRemainingTimeInMillis: () => deadlineMs - Date.now(),
  };
}

/** The channel keeps the process while it has a listener: so none stays while the handler runs. */
function nextInvocation(): Promise<Delivery> {
  return new Promise((resolve) => {
    // The other end is gone: so is the reason to live.
    const onGone = (): never => process.exit(0);
    process.once("disconnect", onGone);
    process.once("message", (delivery) => {
      process.off("disconnect", onGone);
      resolve(delivery as Delivery);
    });
  });
}

/** Reports an uncaught error, and ends the process with the code that Lambda's own client uses. */
async function crash(error: unknown, exitCode: number): Promise<void> {
  try {
    if (isBusy) await tellError(error, true);
    else console.error(error);
  } finally {
    process.exit(exitCode);
  }
}

process.on("uncaughtException", (error) => void crash(error, 129));
process.on("unhandledRejection", (reason) => {
  const error = runtimeError("UnhandledPromiseRejection", describe(reason).errorMessage);
  if (reason instanceof Error && reason.stack !== undefined) error.stack = reason.stack;
  void crash(error, 128);
});
process.on("beforeExit", () => {
  const message = "The handler's promise was never settled, and nothing is left that could settle it";
  void crash(runtimeError("NodeJsExit", message), 13);
});

let handler: Handler;
try {
  handler = await loadHandler();
} catch (error) {
  await tellError(error, true);
  process.exit(1);
}
await tell("ready");
for (;;) {
  isBusy = false;
  const delivery = await nextInvocation();
  isBusy = true;
  try {
    const result = await handler(JSON.parse(delivery.payload), contextOf(delivery));
    await tell({ payload: JSON.stringify(result) ?? "null" });
  } catch (error) {
    await tellError(error, false);
  }
}
