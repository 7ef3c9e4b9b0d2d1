import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { EnvironmentInfo } from "../../tools/local/src/lambda/types.ts";
import { eventually } from "../support/patience.ts";
import { survivorsOf } from "./fixtures/holder.ts";

const script = fileURLToPath(new URL("./fixtures/lambda/parent.ts", import.meta.url));

test("no process of a function outlives a parent that is killed, be it frozen or busy", async () => {
  const parent = spawn(process.execPath, ["--conditions=leasehold-source", "--import", "tsx", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(createInterface({ input: parent.stdout }), "line")) as [string];
  const environments = JSON.parse(line) as EnvironmentInfo[];
  expect(environments.map(({ state }) => state).sort()).toEqual(["busy", "idle"]);
  for (const { pid } of environments) expect(survivorsOf(pid)).toHaveLength(1);

  parent.kill("SIGKILL");
  await once(parent, "exit");
  await eventually(() => {
    for (const { pid } of environments) expect(survivorsOf(pid)).toEqual([]);
  });
});
