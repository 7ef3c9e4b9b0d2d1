import type { Context, Handler } from "aws-lambda";
import type { Guard } from "./guard.ts";
import type { Hold, HoldOutcome } from "./hold.ts";
import { cleanUpPowertools } from "./powertools/clean-up.ts";
import { answerEarly, type EndingRequest, type Stage, watchRequest } from "./request-end.ts";
import { type Lock, setLock } from "./signal.ts";
import { streamOf, withStreamEnd } from "./streams.ts";

/** The request that middy passes to the middleware. */
export interface LeaseLockRequest<TEvent = unknown> {
  event: TEvent;
  /** The handler finds its lock here. */
  context: Context & { lock: Lock };
  response: unknown;
  error: unknown;
  earlyResponse?: unknown;
  // biome-ignore lint/complexity/noBannedTypes: middy's own types use it for a middleware without requirements.
  internal: {};
}

/** A middleware for middy 6 and 7. */
export interface LeaseLockMiddleware<TEvent = unknown> {
  before(request: LeaseLockRequest<TEvent>): Promise<void>;
  after(request: LeaseLockRequest<TEvent>): Promise<void>;
  onError(request: LeaseLockRequest<TEvent>): Promise<void>;
}

/** An event without a declared type, as in AWS's own `Handler`: nothing about it is checked. */
export type UndeclaredEvent = Parameters<Handler>[0];
/** An undeclared event tells a middy chain nothing about its handler's event. */
export type Declared<TEvent> = 0 extends 1 & TEvent ? unknown : TEvent;

/** One request's hold on the lock. */
interface RequestEntry {
  readonly hold: Hold;
  /** The remaining time of the invocation when its outcome was known. */
  remainingMs: number;
  /** Whether the response is a stream, which ends the hold when it ends. */
  isStreaming: boolean;
}

/** Creates a middleware from a guard. */
export function middlewareOf<TEvent>(guard: Guard<TEvent>): LeaseLockMiddleware<Declared<TEvent>> {
  // Not in `request.internal`, which middy 6 can share between requests.
  const entries = new WeakMap<object, RequestEntry>();

  return {
    async before(request) {
      if (entries.has(request)) return;
      setLock(request.context, undefined);
      const entered = await guard.enter(request.event as TEvent, request.context);
      if ("skipped" in entered) {
        await cleanUpPowertools(request);
        answerEarly(request as EndingRequest, entered.result);
        return;
      }
      const entry: RequestEntry = {
        hold: entered,
        remainingMs: Number.POSITIVE_INFINITY,
        isStreaming: false,
      };
      entries.set(request, entry);
      setLock(request.context, entered.lock);
      watchRequest(request as EndingRequest, {
        onOutcome() {
          entry.remainingMs = entered.remainingMs();
        },
        async onCutShort(stage, error) {
          if (!entry.isStreaming) await entered.leave(holdOutcomeOf(entry, stage, error));
        },
      });
    },

    async after(request) {
      const entry = entries.get(request);
      if (entry === undefined) return;
      const leave = async (outcome: HoldOutcome): Promise<void> => {
        // What fails from here on is not the handler.
        entries.delete(request);
        await entry.hold.leave(outcome);
      };
      const stream = streamOf(request.response);
      if (stream === undefined) {
        await leave(holdOutcomeOf(entry, "after", undefined));
        return;
      }
      request.response = withStreamEnd(request.response, stream, leave);
      entry.isStreaming = true;
    },

    async onError(request) {
      const entry = entries.get(request);
      if (entry === undefined) return;
      entries.delete(request);
      // If nobody reads the stream, its producer may still run.
      await entry.hold.leave(entry.isStreaming ? "unknown" : holdOutcomeOf(entry, "failed", request.error));
      // No early response here: the hooks of outer middlewares have to clean up.
      if (entry.hold.isReplaced) request.response = (await entry.hold.skipResult()) ?? null;
    },
  };
}

function holdOutcomeOf(entry: RequestEntry, stage: Stage, error: unknown): HoldOutcome {
  if (stage === "before") return "unused";
  if (entry.hold.mayStillRun(entry.remainingMs, error)) return "unknown";
  return stage === "after" ? "succeeded" : "failed";
}
