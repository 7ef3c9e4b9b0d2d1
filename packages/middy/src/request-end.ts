import { InvalidOptionsError } from "@leasehold/client/internal";

/** The part of middy's request that shows its end. */
export interface EndingRequest {
  response: unknown;
  error: unknown;
  earlyResponse?: unknown;
}

/** An observer of a request's progress. */
export interface RequestObserver {
  /** The handler has returned its result, or an error. By this moment it is judged whether the handler still runs. */
  onOutcome(): void;
  /** The request ends now, without the remaining hooks. A rejection replaces the response. */
  onCutShort(stage: Stage, error: unknown): Promise<void>;
}

/** How far a request has come. */
export type Stage = "before" | "after" | "failed";

/** The observers of a request; several if a chain has several locks. */
const watched = new WeakMap<EndingRequest, RequestObserver[]>();

/**
 * Watches a middy request for ends that its hooks do not see.
 *
 * A hook that answers early ends the request without the following hooks, and ours may be among them. Middy does that
 * by `request.response = request.earlyResponse`, and then returns the response from an async function: so middy waits
 * for a promise in its place. An `onError` hook that throws also skips the rest. The observer notices that when middy
 * stores the new error, but middy cannot wait then.
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
  Object.defineProperties(request, {
    response: {
      get: () => response,
      set(value: unknown) {
        response = value;
        if (!("earlyResponse" in request) || value !== request.earlyResponse) {
          if (stage === "before") stage = "after";
          if (stage === "after") onOutcome();
          return;
        }
        const ending = onCutShort();
        // An undefined answer does not answer a failed request: middy throws its error.
        if (stage === "failed" && value === undefined) return;
        const pending = ending.then(() => {
          if (response === pending) response = value;
          return value;
        });
        // Ignored: the promise is dropped if the request fails instead.
        pending.catch(() => undefined);
        response = pending;
      },
    },
    error: {
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
        onOutcome();
      },
    },
  });
}

/**
 * Answers a request in place of its handler and the following middlewares.
 *
 * Middy then sets the response to the early answer. Versions before 6 do not know early answers: they check whether
 * there is a response, and would run the handler without the lock. There the check throws InvalidOptionsError.
 */
export function answerEarly(request: EndingRequest, answer: unknown): void {
  request.earlyResponse = answer;
  const response = Object.getOwnPropertyDescriptor(request, "response") as PropertyDescriptor;
  Object.defineProperty(request, "response", {
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
