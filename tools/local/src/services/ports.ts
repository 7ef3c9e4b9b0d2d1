/** An execution, as the services describe it. */
export interface ExecutionView {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly name: string;
  readonly status: string;
  readonly startDate: string;
  readonly stopDate?: string;
  readonly redriveCount: number;
  readonly redriveDate?: string;
  readonly input: unknown;
  readonly output?: unknown;
  readonly error?: string;
  readonly cause?: string;
}

/** The state machines behind the Step Functions API. Refusals carry the API's error name in `error`. */
export interface MachinesPort {
  start(request: { readonly stateMachineArn: string; readonly name?: string; readonly input?: unknown }): {
    readonly executionArn: string;
    readonly startDate: string;
  };
  describe(executionArn: string): ExecutionView;
  history(executionArn: string): {
    readonly entered: readonly {
      readonly stateName: string;
      readonly type: string;
      readonly at: string;
      readonly event: number;
    }[];
  };
  stop(
    executionArn: string,
    reason?: { readonly error?: string; readonly cause?: string },
  ): { readonly stopDate: string };
  redrive(executionArn: string): { readonly redriveDate: string };
  executions(stateMachineArn?: string): readonly ExecutionView[];
  finished(executionArn: string): Promise<ExecutionView>;
  sendTaskSuccess(token: string, output: unknown): void;
  sendTaskFailure(token: string, failure: { readonly error?: string; readonly cause?: string }): void;
  sendTaskHeartbeat(token: string): void;
}

/** The functions behind the Lambda API. */
export interface LambdaPort {
  invoke(
    name: string,
    payload: unknown,
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly payload: unknown; readonly functionError?: string }>;
  invokeAsync(name: string, payload: unknown): string;
}
