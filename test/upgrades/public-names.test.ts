// In 1.x what users can import only grows: the reports of the last release say what there was.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { reportFolder } from "../../tools/packaging/api-report.ts";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import { fileAt, lastRelease, missingHistory } from "../support/last-release.ts";
import { namesGone, publicNames } from "./public-names.ts";

const files = globSync(`${reportFolder}/*.md`, { cwd: repositoryFolder });
const report = (file: string): string => readFileSync(join(repositoryFolder, file), "utf8");

describe("the names of a report", () => {
  const jobs = report(`${reportFolder}/jobs.api.md`);

  it("are those of declarations and their members, by the entry that they are imported from", () => {
    const names = [...publicNames(jobs), ...publicNames(report(`${reportFolder}/client.api.md`))];
    expect(names).toEqual(
      expect.arrayContaining([
        "@leasehold/jobs JobRuns",
        "@leasehold/jobs JobRuns.run",
        "@leasehold/jobs TaskSet.name",
        "@leasehold/jobs parseScheduleExpression",
        "@leasehold/client/semaphore SemaphoreState.free",
      ]),
    );
  });

  it("are missed where one goes or moves, and not where a parameter is added", () => {
    const without = jobs.replace("    claim(): Promise<Task | undefined>;\n", "");
    expect(namesGone(jobs, without)).toEqual(["@leasehold/jobs TaskSet.claim"]);
    expect(namesGone(jobs, jobs.replace("claim():", "claim(options?: object):"))).toEqual([]);
    expect(namesGone(jobs, jobs.replace("## @leasehold/jobs", "## @leasehold/other")).length).toBeGreaterThan(
      50,
    );
  });
});

it.for(files)("%s has every name of the last release", { tags: ["long"] }, async (file, { skip }) => {
  skip(missingHistory !== undefined, missingHistory);
  const { commit, version } = await lastRelease();
  const { version: now } = JSON.parse(report("package.json")) as { readonly version: string };
  const isOtherMajor = version.split(".", 1)[0] !== now.split(".", 1)[0];
  skip(isOtherMajor || version.includes("-"), `after ${version} names may go`);
  expect(namesGone(await fileAt(commit, file), report(file))).toEqual([]);
});
