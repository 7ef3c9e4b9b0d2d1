import {
  type DurableContext,
  DurablePromise,
  defaultSerdes,
  type RetryDecision,
  retryPresets,
} from "@aws/durable-execution-sdk-js";
import type { ExecutionLease } from "./execution-lease.ts";
import { isPortable, leaseErrorIn, portably, retryService } from "./failures.ts";

// The SDK's methods have overloads with and without a name in front: a guard passes its arguments on as they are.
type Arguments = unknown[];
type Callback = (...args: Arguments) => Promise<unknown>;
type Method = (...args: Arguments) => DurablePromise<unknown>;
type Retry = (error: Error, attempt: number) => RetryDecision;
type Branch = Callback | { readonly name?: string; readonly func: Callback };

/**
 * Gives a context whose operations do nothing once the lease is lost. Each piece of the user's code in it, and each
 * invocation of another function, first checks that the lease is this execution's.
 *
 * Waits and callbacks are passed on as they are, because they do nothing by themselves.
 */
export function guarded(context: DurableContext, held: ExecutionLease): DurableContext {
  const guards = guardsOf(context as unknown as Record<string, Method>, held);
  return new Proxy(context, {
    get(target, name) {
      const guard = typeof name === "string" ? guards[name] : undefined;
      if (guard !== undefined) return guard;
      const value: unknown = Reflect.get(target, name, target);
      // Bound to the context itself: its operations are guarded already when the SDK calls them on the way.
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function guardsOf(context: Record<string, Method>, held: ExecutionLease): Record<string, Method> {
  const call = (name: string, args: Arguments): DurablePromise<unknown> =>
    translated(method(context, name)(...args));
  return {
    step: (...args) => call("step", retried(withPiece(args, held))),
    waitForCondition: (...args) => call("waitForCondition", withPiece(args, held)),
    waitForCallback: (...args) => call("waitForCallback", retried(withPiece(args, held))),
    runInChildContext: (...args) => call("runInChildContext", withContexts(args, held)),
    map: (...args) => call("map", withContexts(args, held)),
    parallel: (...args) =>
      call(
        "parallel",
        args.map((arg) => (Array.isArray(arg) ? arg.map((branch) => insideBranch(branch, held)) : arg)),
      ),
    invoke: (...args) => {
      const checkedInvoke = async (inner: unknown): Promise<unknown> => {
        const child = inner as Record<string, Method>;
        const check = (): Promise<void> => held.run(async () => undefined);
        await method(child, "step")("lease:check", check, {
          serdes: defaultSerdes,
          retryStrategy: retryService,
        });
        return await method(child, "invoke")(...args);
      };
      // Virtual: a context without a record of its own.
      const terms = { virtualContext: true, errorMapper: (error: unknown) => error };
      return call("runInChildContext", ["lease:invoke", checkedInvoke, terms]);
    },
  };
}

function method(context: Record<string, Method>, name: string): Method {
  const found = context[name];
  if (found === undefined) throw new TypeError(`the durable context has no method ${name}`);
  return found.bind(context);
}

/** The first function among a method's arguments is the user's code that the operation runs. */
function withPiece(args: Arguments, held: ExecutionLease): Arguments {
  const at = args.findIndex((arg) => typeof arg === "function");
  const piece = args[at] as Callback | undefined;
  if (piece === undefined) return args;
  return args.with(at, (...given: Arguments) => held.run(async () => await piece(...given)));
}

/** The user's code among a method's arguments works in contexts of its own. */
function withContexts(args: Arguments, held: ExecutionLease): Arguments {
  return args.map((arg) => (typeof arg === "function" ? inside(arg as Callback, held) : arg));
}

/** Refused steps are not repeated, and steps that could not be checked are, whatever the user's strategy says. */
function retried(args: Arguments): Arguments {
  const at = args.findIndex((arg) => typeof arg === "function");
  if (at === -1) return args;
  const config = args[at + 1] as { readonly retryStrategy?: Retry } | undefined;
  const strategy: Retry = (error, attempt) =>
    isPortable(error)
      ? retryService(error, attempt)
      : (config?.retryStrategy ?? retryPresets.default)(error, attempt);
  return [...args.slice(0, at + 1), { ...config, retryStrategy: strategy }];
}

/** Gives a function that works in a context of its own that guarded context. */
function inside(body: Callback, held: ExecutionLease): Callback {
  return (context, ...others) => portably(() => body(guarded(context as DurableContext, held), ...others));
}

function insideBranch(branch: Branch, held: ExecutionLease): Branch {
  return typeof branch === "function" ? inside(branch, held) : { ...branch, func: inside(branch.func, held) };
}

/**
 * The operation has begun already. Awaiting this awaits the operation, and rejects with lease errors in their own
 * classes.
 */
function translated(operation: DurablePromise<unknown>): DurablePromise<unknown> {
  return new DurablePromise(async () => {
    try {
      return await operation;
    } catch (error) {
      throw leaseErrorIn(error) ?? error;
    }
  });
}
