import { expect, onTestFinished, vi } from "vitest";
import { Child } from "../../packages/cli/src/work/child.ts";
import { eventually } from "./patience.ts";

/** A child of the command line in place of a process. */
export interface StubChild {
  /** The signals that it has got. */
  readonly got: readonly string[];
  readonly end: (code: number) => void;
  /** Resolves when the command line starts it. */
  started(): Promise<void>;
}

/**
 * Starts this child in place of processes, for one test. It ends when the test says so, or with `code` as soon as it
 * gets a signal. Its start takes until `hasStarted`.
 */
export function stubChild(code: number, hasStarted: Promise<void> = Promise.resolve()): StubChild {
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  const got: string[] = [];
  const take = (name: string): void => {
    got.push(name);
    end(code);
  };
  const child = { ended, kill: take, passOn: take, closePipe: () => undefined, hasLeftovers: () => false };
  const start = vi.spyOn(Child, "start").mockImplementation(async () => {
    await hasStarted;
    return child as unknown as Child;
  });
  onTestFinished(() => start.mockRestore());
  return { got, end, started: () => eventually(() => expect(start).toHaveBeenCalled(), 1) };
}

/** The signals of a call: `send` sends one to the listener that takes them while a child runs. */
export function signals() {
  let listener: (name: NodeJS.Signals) => void = () => undefined;
  const onRedirect = (given: typeof listener): undefined => {
    listener = given;
  };
  return { onRedirect, send: (name: NodeJS.Signals) => listener(name) };
}
