import { onTestFinished } from "vitest";

/** Collects the uncaught exceptions of this test, which would fail it otherwise. */
export function collectUncaught(): unknown[] {
  const thrown: unknown[] = [];
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => void thrown.push(error));
  onTestFinished(() => {
    process.removeAllListeners("uncaughtException");
    for (const listener of listeners) process.on("uncaughtException", listener);
  });
  return thrown;
}
