import { type Mock, vi } from "vitest";

/** A computation that has been started. */
export interface ComputationRun<Value> {
  readonly resolve: (value: Value) => void;
  readonly reject: (error: Error) => void;
  readonly signal: AbortSignal;
}

type ControlledCompute<Value> = (context: { readonly signal: AbortSignal }) => Promise<Value>;

/** A computation that ends when the test says so. */
export function controlled<Value = string>(): {
  readonly compute: Mock<ControlledCompute<Value>>;
  readonly run: (index: number) => ComputationRun<Value>;
} {
  const runs: ComputationRun<Value>[] = [];
  const compute = vi.fn<ControlledCompute<Value>>(
    ({ signal }) => new Promise<Value>((resolve, reject) => runs.push({ resolve, reject, signal })),
  );
  const run = (index: number): ComputationRun<Value> => {
    const found = runs[index];
    if (found === undefined) throw new Error(`computation ${index} has not been started`);
    return found;
  };
  return { compute, run };
}
