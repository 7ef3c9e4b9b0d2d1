// The errors of engines that cannot be found, started or reached. Each message says what to do.

/** The stable codes of these errors. */
export type EngineErrorCode =
  | "ENGINE_UNAVAILABLE"
  | "ENGINE_START_FAILED"
  | "ENGINE_OPTION_INVALID"
  | "ENDPOINT_INVALID"
  | "ENDPOINT_UNREACHABLE";

/**
 * No DynamoDB engine can be started on this machine.
 *
 * The message says what is missing and names the two ways out: install Java 17 or newer, or set DYNAMODB_ENDPOINT.
 */
export class EngineUnavailableError extends Error {
  readonly code: EngineErrorCode = "ENGINE_UNAVAILABLE";

  /** What each engine that was looked for lacks. */
  readonly missing: readonly string[];

  constructor(missing: readonly string[]) {
    super(
      `No DynamoDB engine can be started on this machine: ${missing.join("; ")}. ` +
        "Install Java 17 or newer, or set DYNAMODB_ENDPOINT to the URL of a running engine " +
        'such as http://localhost:8000, or to "aws".',
    );
    this.name = "EngineUnavailableError";
    this.missing = missing;
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

/** An option of startEngine has a value that is not allowed. Nothing was started. */
export class InvalidEngineOptionError extends TypeError {
  readonly code: EngineErrorCode = "ENGINE_OPTION_INVALID";

  /** The option's name. */
  readonly option: string;

  constructor(option: string, allowed: string, cause?: ErrorOptions) {
    super(`${option} of startEngine is not allowed as it is; allowed: ${allowed}`, cause);
    this.name = "InvalidEngineOptionError";
    this.option = option;
  }
}

/** DYNAMODB_ENDPOINT is neither an http or https URL nor `aws`. */
export class InvalidEndpointError extends TypeError {
  readonly code: EngineErrorCode = "ENDPOINT_INVALID";

  constructor(value: string) {
    super(
      `DYNAMODB_ENDPOINT must be "aws" or an http or https URL such as http://localhost:8000, not "${value}"`,
    );
    this.name = "InvalidEndpointError";
  }
}

/**
 * No DynamoDB answers at the URL that DYNAMODB_ENDPOINT names.
 *
 * The message names the URL and what went wrong there, and says what to do.
 */
export class EndpointUnreachableError extends Error {
  readonly code: EngineErrorCode = "ENDPOINT_UNREACHABLE";

  constructor(endpoint: string, problem: string) {
    super(
      `DYNAMODB_ENDPOINT is ${endpoint}, and no DynamoDB answers there (${problem}). Start the engine that it names, ` +
        "correct the URL, or unset DYNAMODB_ENDPOINT to have an engine started for you.",
    );
    this.name = "EndpointUnreachableError";
  }
}
