// An engine and its options, as callers see them.

/** The engines that can be started on this machine, as opposed to an endpoint that runs elsewhere. */
export type LocalEngineName = "dynamodb-local" | "dynoxide";

/** Settings to spread into a DynamoDBClient's configuration. */
export interface EngineClientConfig {
  readonly endpoint?: string;
  readonly region?: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** Options of startEngine. */
export interface EngineOptions {
  /**
   * The engine to start, whatever DYNAMODB_ENDPOINT says.
   *
   * @default DYNAMODB_ENDPOINT if it is set, else the first of availableEngines()
   */
  readonly engine?: LocalEngineName;
  /**
   * The port of this machine that a started engine listens on. If it is taken, the engine uses the next free port.
   *
   * @default - any free one
   */
  readonly port?: number;
  /**
   * The folder in which a started engine keeps its data; it is created if it is missing. Two engines cannot share one
   * at the same time, and each kind of engine has its own files there.
   *
   * @default - the data is in memory, and gone with the engine
   */
  readonly dataDir?: string;
  /**
   * The environment for DYNAMODB_ENDPOINT, JAVA_HOME, PATH and the AWS settings; a started engine inherits it.
   *
   * @default process.env
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Ends the start when it aborts: then nothing of it is left. @default - none */
  readonly signal?: AbortSignal;
}

/**
 * A DynamoDB for requests: a process that belongs to this one, or an endpoint that is neither started nor stopped here.
 *
 * A started engine never outlives the process that started it, however that process ends, and does not keep it alive.
 * Without `dataDir` it is empty at its start and forgets everything at its end.
 */
export interface Engine {
  /** `"endpoint"` stands for the endpoint in DYNAMODB_ENDPOINT, including AWS. */
  readonly name: LocalEngineName | "endpoint";
  /** A label for people, such as `DynamoDB Local 3.3.1`. */
  readonly version: string;
  /** The URL for requests; undefined for AWS itself. */
  readonly endpoint: string | undefined;
  /** The engine's process; undefined for an endpoint. */
  readonly pid: number | undefined;
  /** The DynamoDBClient configuration for this engine; empty for AWS. */
  readonly clientConfig: EngineClientConfig;
  /** Resolves when the engine's process is gone, for any reason; never for an endpoint. */
  readonly exited: Promise<void>;
  /** Ends the engine and resolves when its process is gone. Further calls give the same promise. */
  stop(): Promise<void>;
  /** The same as stop(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
