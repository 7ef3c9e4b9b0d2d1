// An engine and its options, as callers see them.

/** The engines that can be started on a machine of one's own, as opposed to an endpoint that runs elsewhere. */
export type LocalEngineName = "dynamodb-local" | "dynoxide";

/** Settings to spread into a DynamoDBClient's configuration. */
export interface EngineClientConfig {
  readonly endpoint?: string;
  readonly region?: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** What startEngine accepts. */
export interface EngineOptions {
  /**
   * The engine to start, whatever DYNAMODB_ENDPOINT says.
   *
   * @default DYNAMODB_ENDPOINT where it is set, else the first of availableEngines()
   */
  readonly engine?: LocalEngineName;
  /**
   * Where DYNAMODB_ENDPOINT, JAVA_HOME, PATH and the AWS settings are read; a started engine inherits it.
   *
   * @default process.env
   */
  readonly env?: NodeJS.ProcessEnv;
  /** Gives the start up when it aborts: nothing of it is left then. @default - none */
  readonly signal?: AbortSignal;
}

/**
 * A DynamoDB to talk to: a process that belongs to this one, or an endpoint that is neither started nor stopped here.
 *
 * A started engine is empty, forgets everything at its end, and never outlives the process that started it, however
 * that process ends. It does not keep the process alive.
 */
export interface Engine {
  /** `"endpoint"` stands for what DYNAMODB_ENDPOINT names, AWS included. */
  readonly name: LocalEngineName | "endpoint";
  /** A label for people, such as `DynamoDB Local 3.3.1`. */
  readonly version: string;
  /** The URL to talk to; undefined for AWS itself. */
  readonly endpoint: string | undefined;
  /** The engine's process; undefined for an endpoint. */
  readonly pid: number | undefined;
  /** What a DynamoDBClient needs to talk to this engine; empty for AWS. */
  readonly clientConfig: EngineClientConfig;
  /** Ends the engine and resolves when its process is gone. Further calls give the same promise. */
  stop(): Promise<void>;
  /** The same as stop(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
