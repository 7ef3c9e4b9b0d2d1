// Errors of states, and the interruption that no state can catch.

/**
 * An error as Step Functions knows it: a name to match in Retry and Catch, and a cause for people.
 *
 * A service integration throws it to fail its task; the interpreter's own methods throw it with the error names
 * of the Step Functions API (`ExecutionDoesNotExist`, `TaskTimedOut`, ...).
 */
export class StatesError extends Error {
  /** The name that `ErrorEquals` is compared with, such as `DynamoDb.ConditionalCheckFailedException`. */
  readonly error: string;
  override readonly cause: string | undefined;

  constructor(error: string, cause?: string) {
    super(cause === undefined ? error : `${error}: ${cause}`);
    this.name = new.target.name;
    this.error = error;
    this.cause = cause;
  }
}

/** A definition that Step Functions would refuse, or that asks for more than this interpreter does. */
export class InvalidDefinitionError extends StatesError {
  /** Every problem that was found, each with its place in the definition. */
  readonly problems: readonly string[];

  constructor(name: string, problems: readonly string[]) {
    super("InvalidDefinition", `the state machine ${JSON.stringify(name)}: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

/** Stops work whose result is not needed any more. No Retry and no Catch sees it. */
export class Interrupted extends Error {
  constructor(message: string) {
    super(message);
    // The name by which AWS clients and fetch know an abort.
    this.name = "AbortError";
  }
}

/** Whatever a service integration threw, as an error of Step Functions. */
export function toStatesError(thrown: unknown): StatesError {
  if (thrown instanceof StatesError) return thrown;
  return new StatesError("States.TaskFailed", thrown instanceof Error ? thrown.message : String(thrown));
}
