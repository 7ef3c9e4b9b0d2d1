// In 1.x what users can import only grows: the reports of the last release say what there was.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { reportFolder } from "../../tools/packaging/api-report.ts";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import { fileAt, lastRelease, missingHistory } from "../support/last-release.ts";
import { namesGone } from "./public-names.ts";

const files = globSync(`${reportFolder}/*.md`, { cwd: repositoryFolder });
const report = (file: string): string => readFileSync(join(repositoryFolder, file), "utf8");

it.for(files)("%s has every name of the last release", { tags: ["long"] }, async (file, { skip }) => {
  skip(missingHistory !== undefined, missingHistory);
  const { commit, version } = await lastRelease();
  const { version: now } = JSON.parse(report("package.json")) as { readonly version: string };
  const isOtherMajor = version.split(".", 1)[0] !== now.split(".", 1)[0];
  skip(isOtherMajor || version.includes("-"), `after ${version} names may go`);
  expect(namesGone(await fileAt(commit, file), report(file))).toEqual([]);
});
