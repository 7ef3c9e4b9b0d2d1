import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { startScript } from "../support/processes.ts";

describe("SIGTERM", () => {
  test.each([
    [
      "a handler that stops has its lease released before the process dies",
      "stops",
      "running",
      ["aborted by shutdown", "released true"],
    ],
    [
      "a handler that does not stop is not released: its lease expires",
      "deaf",
      "running",
      ["aborted by shutdown"],
    ],
    [
      "a wait is given up, and its ticket has left the queue before the process dies",
      "waits",
      "1 waiting",
      ["rejected by LEASE_INVOCATION_ENDING", "0 waiting"],
    ],
    ["an idle process dies as it would without us", "idle", "idle", []],
  ] as const)(
    "%s",
    async (_, behaviour, ready, expected) => {
      const child = startScript(
        new URL("leased-shutdown-child.ts", import.meta.url),
        { behaviour },
        { ipc: true },
      );
      onTestFinished(() => void child.kill("SIGKILL"));
      const messages: string[] = [];
      await new Promise<void>((resolve, reject) => {
        child.on("message", (message: string) => {
          messages.push(message);
          if (message === ready) resolve();
        });
        child.once("exit", () => reject(new Error("it ended too early")));
      });
      const before = messages.length;
      const sentAt = performance.now();
      child.kill("SIGTERM");
      const [code, signal] = await once(child, "exit");

      expect([code, signal]).toEqual([null, "SIGTERM"]);
      const after = messages.slice(before).filter((message) => message !== "idle");
      expect(after).toEqual(expected);
      expect(performance.now() - sentAt).toBeLessThan(2_000);
    },
    20_000,
  );
});
