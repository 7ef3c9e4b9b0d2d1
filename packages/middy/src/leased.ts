import { check, runTraced } from "@leasehold/client/internal";
import type { Callback, Context } from "aws-lambda";
import type { Guard } from "./guard.ts";
import { type Lock, setLock } from "./signal.ts";
import { streamOf, withStreamEnd } from "./streams.ts";

/**
 * A Lambda handler, as Lambda or middy calls it, and as AWS's types (`Handler`, `SQSHandler`...) declare it. Its
 * `length` is two: since Node.js 24, Lambda refuses handlers with the former third parameter, the callback.
 */
export type LeasedHandler<TEvent, TResult> = (
  event: TEvent,
  context: Context,
  /** Middy's third argument: the handler follows its signal. A callback of Lambda is not called. */
  more?: { readonly signal?: AbortSignal } | Callback<TResult>,
) => Promise<TResult>;

/** The handler of `leased`, as the user gives it. */
type HandlerOf<TEvent, TResult> = (event: TEvent, context: Context, lock: Lock) => Promise<TResult> | TResult;

/** Puts a guard around a handler or, without a handler, returns the decorator of methods. */
export function leasedBy<TEvent, TResult>(
  guard: Guard<TEvent>,
  rest: readonly (HandlerOf<TEvent, TResult> | undefined)[],
): LeasedHandler<TEvent, TResult> | LeasedMethodDecorator<TEvent> {
  if (rest.length === 0) return methodDecorator(guard);
  const [handler] = rest;
  check(typeof handler === "function", "handler", handler, "a function");
  return wrapped(guard, handler);
}

/** Wraps a handler with a guard. */
function wrapped<TEvent, TResult>(
  guard: Guard<TEvent>,
  handler: HandlerOf<TEvent, TResult>,
): LeasedHandler<TEvent, TResult> {
  return async (event, context, ...[more]) => {
    const entry = await guard.enter(event, context, typeof more === "function" ? undefined : more?.signal);
    if ("skipped" in entry) return entry.result as TResult;
    let result: TResult;
    try {
      result = await runTraced(entry.lock.lease, () => handler(event, context, entry.lock));
      const stream = streamOf(result);
      if (stream !== undefined) {
        return withStreamEnd(result, stream, (outcome) => entry.leave(outcome)) as TResult;
      }
    } catch (error) {
      await entry.leave("failed");
      if (entry.isReplaced) return (await entry.skipResult()) as TResult;
      throw error;
    }
    await entry.leave("succeeded");
    return result;
  };
}

/**
 * A method that handles events, and finds its lock in `context.lock`. To fit Powertools' types it may declare the member
 * as optional.
 */
type HandlerMethod<TEvent> = (
  event: unknown extends TEvent ? never : TEvent,
  context: Context & { lock: Lock },
) => Promise<unknown>;

/** A decorator of a method: of TypeScript 5, or of `experimentalDecorators`, as Powertools' own are. */
export interface LeasedMethodDecorator<TEvent = unknown> {
  <Method extends HandlerMethod<TEvent>>(
    method: Method,
    context: ClassMethodDecoratorContext<unknown, Method>,
  ): Method;
  <Method extends HandlerMethod<TEvent>>(
    prototype: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void;
}

/** Returns the decorator that puts a guard around a method. The instances of the class share it. */
function methodDecorator<TEvent>(guard: Guard<TEvent>): LeasedMethodDecorator<TEvent> {
  const around = (value: unknown, place: unknown): unknown => {
    check(typeof value === "function", "the member under @leased", place, "a method");
    const run = value as (this: unknown, event: TEvent, context: Context) => unknown;
    return async function (
      this: unknown,
      event: TEvent,
      context: Context,
      ...more: [{ readonly signal?: AbortSignal }?]
    ) {
      setLock(context, undefined);
      const handler = wrapped(guard, (_event, _context, lock) => {
        setLock(context, lock);
        return run.call(this, event, context);
      });
      return await handler(event, context, ...more);
    };
  };
  const decorate = (first: unknown, second: unknown, descriptor?: PropertyDescriptor): unknown => {
    const { kind } = Object(second) as Partial<DecoratorContext>;
    if (kind !== undefined) return around(kind === "method" ? first : undefined, kind);
    if (descriptor === undefined) return around(undefined, second);
    descriptor.value = around(descriptor.value, second);
    return undefined;
  };
  return decorate as LeasedMethodDecorator<TEvent>;
}
