/** The stable codes of this package's errors. */
export type EngineErrorCode = "ENGINE_UNAVAILABLE" | "ENGINE_START_FAILED";

/**
 * No DynamoDB engine can be started on this machine.
 *
 * The message says what is missing and names the two ways out: install Java 17 or newer, or set DYNAMODB_ENDPOINT.
 */
export class EngineUnavailableError extends Error {
  readonly code: EngineErrorCode = "ENGINE_UNAVAILABLE";

  /** @param lacks What each engine that was looked for is missing. */
  constructor(lacks: readonly string[]) {
    super(
      `No DynamoDB engine can be started on this machine: ${lacks.join("; ")}. ` +
        "Install Java 17 or newer, or set DYNAMODB_ENDPOINT to the URL of a running engine " +
        'such as http://localhost:8000, or to "aws".',
    );
    this.name = "EngineUnavailableError";
  }
}

/**
 * An engine is there but did not come up.
 *
 * The message ends with the last lines of the engine's own output.
 */
export class EngineStartError extends Error {
  readonly code: EngineErrorCode = "ENGINE_START_FAILED";

  constructor(problem: string, output: string) {
    super(output === "" ? `${problem}. It printed nothing.` : `${problem}. Its last output:\n${output}`);
    this.name = "EngineStartError";
  }
}
