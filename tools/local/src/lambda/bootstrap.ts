/**
 * The runtime client: what runs inside an execution environment and calls the handler.
 *
 * It talks to the Runtime API only, and plain Node starts it from this source: so it imports nothing of the tool, and its
 * types are erasable.
 */
import { existsSync } from "node:fs";
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

type Handler = (event: unknown, context: object) => unknown;

const environment = { ...process.env };
const setting = (name: string): string => environment[name] ?? "";
const base = `http://${setting("AWS_LAMBDA_RUNTIME_API")}/2018-06-01/runtime`;
const agent = new Agent({ keepAlive: true });

/** The request id of the invocation under way. */
let current: string | undefined;

/** A problem of the function's own making that has a name in Lambda. */
function runtimeError(name: string, message: string): Error {
  const error = new Error(message);
  error.name = `Runtime.${name}`;
  return error;
}

function call(
  method: "GET" | "POST",
  path: string,
  body?: string,
  headers: Record<string, string> = {},
): Promise<{ headers: IncomingHttpHeaders; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${base}${path}`, { method, agent, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => resolve({ headers: answer.headers, body: text }));
      answer.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function postError(path: string, error: unknown): Promise<unknown> {
  const described = describe(error);
  console.error(JSON.stringify(described));
  return call("POST", path, JSON.stringify(described), {
    "lambda-runtime-function-error-type": described.errorType,
  });
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

function contextOf(headers: IncomingHttpHeaders): object {
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  return {
    callbackWaitsForEmptyEventLoop: true,
    awsRequestId: String(headers["lambda-runtime-aws-request-id"]),
    functionName: setting("AWS_LAMBDA_FUNCTION_NAME"),
    functionVersion: setting("AWS_LAMBDA_FUNCTION_VERSION"),
    invokedFunctionArn: String(headers["lambda-runtime-invoked-function-arn"]),
    memoryLimitInMB: setting("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"),
    logGroupName: setting("AWS_LAMBDA_LOG_GROUP_NAME"),
    logStreamName: setting("AWS_LAMBDA_LOG_STREAM_NAME"),
    getRemainingTimeInMillis: () => deadline - Date.now(),
  };
}

async function invokeOnce(handler: Handler, headers: IncomingHttpHeaders, body: string): Promise<void> {
  const id = String(headers["lambda-runtime-aws-request-id"]);
  current = id;
  let result: string;
  try {
    result = JSON.stringify(await handler(JSON.parse(body), contextOf(headers))) ?? "null";
  } catch (error) {
    await postError(`/invocation/${id}/error`, error);
    current = undefined;
    return;
  }
  await call("POST", `/invocation/${id}/response`, result);
  current = undefined;
}

/** Reports an uncaught error, and ends the process with the code that Lambda's own client uses. */
async function crash(error: unknown, exitCode: number): Promise<void> {
  try {
    if (current !== undefined) await postError(`/invocation/${current}/error`, error);
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
  await postError("/init/error", error);
  process.exit(1);
}
for (;;) {
  const invocation = await call("GET", "/invocation/next").catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error)) throw error;
    // The other end is gone: so is the reason to live.
    process.exit(0);
  });
  await invokeOnce(handler, invocation.headers, invocation.body);
}
