/**
 * The runtime client: what runs inside an execution environment and calls the handler.
 *
 * It talks to the Runtime API only, and plain Node starts it from this source: so it imports nothing of the tool, and its
 * types are erasable.
 */
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
  const [, file, exported] = /^((?:.*\/)?[^./]+)\.(.+)$/.exec(text) ?? [];
  if (file === undefined || exported === undefined) {
    throw runtimeError("MalformedHandlerName", `Bad handler ${JSON.stringify(text)}`);
  }
  const module = await loadModule(join(setting("LAMBDA_TASK_ROOT"), file), file);
  const handler = exportOf(module, exported) ?? exportOf(module.default, exported);
  if (typeof handler !== "function") {
    throw runtimeError("HandlerNotFound", `${text} is undefined or not exported`);
  }
  if (handler.length >= 3) {
    throw runtimeError(
      "CallbackHandlerDeprecated",
      `${text} takes a callback, which Lambda has not called since Node.js 24: return a promise instead`,
    );
  }
  return handler as Handler;
}

async function loadModule(path: string, file: string): Promise<Record<string, unknown>> {
  for (const extension of [".js", ".mjs", ".cjs"]) {
    const url = pathToFileURL(path + extension).href;
    try {
      return (await import(url)) as Record<string, unknown>;
    } catch (error) {
      if (!isMissing(error, url)) throw namedLoadError(error);
    }
  }
  throw runtimeError("ImportModuleError", `Error: Cannot find module '${file}'`);
}

/** Whether the file itself is missing, and not something that it imports. */
function isMissing(error: unknown, url: string): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    error.code === "ERR_MODULE_NOT_FOUND" &&
    "url" in error &&
    error.url === url
  );
}

function namedLoadError(error: unknown): unknown {
  if (error instanceof SyntaxError) {
    return runtimeError("UserCodeSyntaxError", `SyntaxError: ${error.message}`);
  }
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (error instanceof Error && (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND")) {
    return runtimeError("ImportModuleError", `Error: ${error.message}`);
  }
  return error;
}

function exportOf(module: unknown, path: string): unknown {
  let value = module;
  for (const name of path.split(".")) {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
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
