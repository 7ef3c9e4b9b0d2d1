import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryFolder } from "../../tools/packaging/prepare.ts";
import type { Consumer } from "./cdk-init.ts";

const pages = [
  "README.md",
  "tools/site/front.md",
  "docs/quick-start.md",
  "docs/command-line.md",
  "packages/cli/README.md",
];

/** What a page tells people to call, word for word: `npx @leasehold/cli dev`. */
async function toldIn(page: string): Promise<readonly string[]> {
  const text = await readFile(join(repositoryFolder, page), "utf8");
  return [...text.matchAll(/npx @leasehold\/cli [^`\n#]+/g)].map(([line]) => line.trim());
}

function wordsOf(line: string): readonly string[] {
  const [, ...words] = line.split(" ");
  return ["--yes", ...words];
}

function check(isRight: boolean, line: string, output: string): void {
  if (!isRight) throw new Error(`${line} said ${JSON.stringify(output)}`);
}

/** The first lines of the README: the installation, and the program, under the name and the command that it gives. */
const readme: Consumer = async (project, installed) => {
  const text = await readFile(join(repositoryFolder, "README.md"), "utf8");
  const [, packages = ""] = /^npm install (.+)$/m.exec(text) ?? [];
  const [, , program = ""] = /^```ts\n((.*?)^)```$/ms.exec(text) ?? [];
  const [, file = "", command = ""] = /Save it as `(\S+)`, and run it with `npx (.+?)`/.exec(text) ?? [];
  await project.install(packages.split(" ").map(installed));
  await project.write(file, program);
  const output = await project.step(`npx ${command}`, "npx", ["--yes", ...command.split(" ")]);
  check(/^importing customers\.csv with fencing token \d+$/m.test(output), command, output);
};

/**
 * Somebody who has nothing but npm, an empty folder and what the first pages say. The README's program runs, and each command
 * that begins with npx, word for word; so do those that `dev` prints.
 */
export const newcomer: Consumer = async (project, installed) => {
  const told = new Set((await Promise.all(pages.map(toldIn))).flat());
  await readme(project, installed);
  // From here npx finds the command in the project, and asks no registry for it.
  await project.install(["cli", "client", "jobs", "engine"].map((name) => installed(`@leasehold/${name}`)));
  await project.write("deploy.sh", "#!/bin/sh\necho deployed under $LEASEHOLD_KEY\n");
  await project.step("chmod", "chmod", ["+x", "deploy.sh"]);
  const lost = "npx @leasehold/cli ls, before there is a table";
  const without = await project.serve(lost, "npx", wordsOf("npx @leasehold/cli ls")).output();
  check(/: npx @leasehold\/cli dev$/m.test(without), lost, without);
  const dev = project.serve("npx @leasehold/cli dev", "npx", wordsOf("npx @leasehold/cli dev"));
  try {
    const exported = (await dev.until(/^export .+$/m))[0];
    const talk = (await dev.until(/Ctrl-C ends it\./)).input ?? "";
    check(exported.includes("LEASEHOLD_TABLE_NAME=leases"), "npx @leasehold/cli dev", talk);
    const env = Object.fromEntries(
      [...exported.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    );
    const own = [...talk.matchAll(/npx @leasehold\/cli [a-z].*$/gm)].map(([line]) => line.trim());
    check(own.length === 3, "npx @leasehold/cli dev", talk);
    await project.write("lock.mts", 'console.log("table", process.env.LEASEHOLD_TABLE_NAME);\n');
    for (const line of new Set([...told, ...own])) {
      if (line === "npx @leasehold/cli dev") continue;
      const expected = expectations[line];
      if (expected === undefined) throw new Error(`nothing is known of "${line}": say what it does`);
      const words = wordsOf(line.replace("sleep 30", "sleep 1"));
      const served = project.serve(line, "npx", words, env);
      if (line.endsWith(" console")) {
        await served.until(expected);
        await served.end();
      } else {
        const output = await served.output();
        check(expected.test(output), line, output);
      }
    }
  } finally {
    await dev.end();
  }
};

const expectations: Readonly<Record<string, RegExp>> = {
  // `dev` has made it.
  "npx @leasehold/cli table create leases": /the table leases exists already/,
  "npx @leasehold/cli ls": /0 keys|nothing is held|KEY/,
  "npx @leasehold/cli run deploy/prod --wait 10m -- ./deploy.sh": /deployed under deploy\/prod/,
  "npx @leasehold/cli run deploy --wait 10m -- ./deploy.sh": /deployed under deploy$/m,
  "npx @leasehold/cli console": /^http:\/\/127\.0\.0\.1:\d+\/#secret=/m,
  "npx @leasehold/cli dev -- node lock.mts": /table leases/,
  "npx @leasehold/cli dev -- npx tsx lock.mts": /table leases/,
  // Without a terminal it says nothing.
  "npx @leasehold/cli run hello -- sleep 30": /^(?!.*(leasehold:|npm error))/s,
  "npx @leasehold/cli get hello": /hello/,
};
