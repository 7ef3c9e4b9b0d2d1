import { InvalidOptionsError } from "@leasehold/client/internal";

/** What middy hands to its middlewares, as far as its end can be told from it. */
export interface EndingRequest {
  response: unknown;
  error: unknown;
  earlyResponse?: unknown;
}

/** Who wants to know how a request goes on. */
export interface RequestObserver {
  /** The handler's result, or an error, is there: the moment by which to tell whether the handler still runs. */
  onOutcome(): void;
  /** The request ends now, without the remaining hooks. It rejects in place of the response. */
  onCutShort(stage: Stage, error: unknown): Promise<void>;
}

/** How far a request has come. */
export type Stage = "before" | "after" | "failed";

/** Who watches a request; more than one where a chain has more than one lock. */
const watched = new WeakMap<EndingRequest, RequestObserver[]>();

/**
 * Watches a request of middy's for ends that its hooks do not see.
 *
 * A hook that answers early ends the request without the hooks that follow, ours perhaps among them. Middy does that by
 * `request.response = request.earlyResponse`, and then returns the response from an async function: a promise that is
 * put there is waited for. A hook of `onError` that throws also skips the rest; that is noticed when middy stores the
 * new error, but cannot be waited for.
 */
export function watchRequest(request: EndingRequest, observer: RequestObserver): void {
  const present = watched.get(request);
  if (present !== undefined) {
    present.push(observer);
    return;
  }
  const observers = [observer];
  watched.set(request, observers);
  const onOutcome = (): void => {
    for (const each of observers) each.onOutcome();
  };
  const onCutShort = (): Promise<unknown> =>
    Promise.all(observers.map((each) => each.onCutShort(stage, error)));

  let { response, error } = request;
  let stage: Stage = "before";
  let pending: Promise<unknown> | undefined;
  const common = { configurable: true, enumerable: true };
  Object.defineProperties(request, {
    response: {
      ...common,
      get: () => response,
      set(value: unknown) {
        response = value;
        if (!("earlyResponse" in request) || value !== request.earlyResponse) {
          if (stage === "before") stage = "after";
          if (stage === "after") onOutcome();
          return;
        }
        const ending = onCutShort();
        // A failed request that answers undefined is not answered: middy throws its error.
        if (stage === "failed" && value === undefined) return;
        pending = ending.then(() => {
          if (response === pending) response = value;
          return value;
        });
        // Ignored: it is left alone should the request fail instead.
        pending.catch(() => undefined);
        response = pending;
      },
    },
    error: {
      ...common,
      get: () => error,
      set(value: unknown) {
        const earlier = error;
        error = value;
        if (stage === "failed") {
          const isThrown =
            value === earlier || (value as { originalError?: unknown } | null)?.originalError === earlier;
          if (isThrown) void onCutShort();
          return;
        }
        stage = "failed";
        if (pending !== undefined && response === pending) response = undefined;
        onOutcome();
      },
    },
  });
}

/**
 * Answers a request in place of its handler, and of the middlewares that follow.
 *
 * Middy sets the response to the early answer next. Before its version 6 it did not know of early answers: it looks
 * whether there is a response, and would run the handler without the lock. There the look throws InvalidOptionsError.
 */
export function answerEarly(request: EndingRequest, answer: unknown): void {
  request.earlyResponse = answer;
  const response = Object.getOwnPropertyDescriptor(request, "response") as PropertyDescriptor;
  Object.defineProperty(request, "response", {
    configurable: true,
    enumerable: true,
    get() {
      const allowed = "6 or 7: an earlier one would run the handler though the lock is held";
      throw new InvalidOptionsError("the version of @middy/core", "below 6", allowed);
    },
    set(value: unknown) {
      Object.defineProperty(request, "response", response);
      request.response = value;
    },
  });
}
