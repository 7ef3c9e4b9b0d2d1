// What is said of a stranger's command that hangs, as npm does when its registry does not answer.
import { afterEach, beforeEach, expect, it } from "vitest";
import { StrangersProject } from "./project.ts";

let project: StrangersProject;

beforeEach(async () => {
  project = await StrangersProject.create("newcomer");
});

afterEach(async () => {
  await project.remove();
});

const hanging = ["-e", 'console.log("npm http fetch GET 200"); setInterval(() => {}, 1_000)'];
const said = /newcomer: npx ls was killed after 2 s.*npm ping.*:\nnpm http fetch GET 200\n/;

it.skipIf(process.platform === "win32")("is killed, and shows its output and what to do", async () => {
  const waited = await project.serve("npx ls", process.execPath, hanging, {}, 2_000);
  await expect(waited.output()).rejects.toThrow(said);
  const listened = await project.serve("npx ls", process.execPath, hanging, {}, 2_000);
  await expect(listened.until(/never/)).rejects.toThrow(said);
});

it.skipIf(process.platform === "win32")("is none that ends in time", async () => {
  const served = await project.serve("node", process.execPath, ["-e", "console.log(1)"], {}, 60_000);
  expect(await served.output()).toBe("1\n");
});
