// What the shell blocks of the pages may say without an excuse: commands whose names this repository knows.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { programs } from "../../tools/programs.ts";

const root = join(import.meta.dirname, "../..");

interface Names {
  readonly scripts?: Readonly<Record<string, string>>;
  readonly name?: string;
  readonly dependencies?: object;
  readonly devDependencies?: object;
  readonly peerDependencies?: object;
}

function manifestAt(file: string): Names {
  return JSON.parse(readFileSync(join(root, file), "utf8")) as Names;
}

const manifests = globSync(["package.json", "packages/*/package.json"], { cwd: root }).map(manifestAt);
const scripts = new Set(Object.keys(manifestAt("package.json").scripts ?? {}));
const packages = new Set(
  manifests.flatMap(({ name, dependencies, devDependencies, peerDependencies }) => [
    name ?? "",
    ...Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies }),
  ]),
);

/** What is wrong with a line of a shell block; undefined for a comment, an empty line and a command that is right. */
export function problemOf(line: string): string | undefined {
  const problems = line
    .replace(/(^|\s)#.*$/, "")
    .split("&&")
    .map((command) => command.trim())
    .filter((command) => command !== "")
    .map(problemOfCommand);
  return problems.find((problem) => problem !== undefined);
}

function problemOfCommand(command: string): string | undefined {
  const [program, verb = "", ...rest] = command.replace(/^(\w+=\S+ )*/, "").split(/\s+/);
  const words = rest.filter((word) => !word.startsWith("-"));
  if (program === "npm" && ["install", "i", "ci"].includes(verb)) return unknownPackage(words);
  if (program === "npm" && verb === "run")
    return unknownScript(rest[0] ?? "", rest[1] === "--" ? rest[2] : undefined);
  if (program === "npm" && ["test", "start"].includes(verb)) return unknownScript(verb);
  if (program === "npx" && verb === "vitest") return missingFile(words.slice(1));
  if (program === "leasehold") return unknownCommand([verb, ...rest]);
  if (program === "npx" && ["leasehold", "@leasehold/cli"].includes(verb)) return unknownCommand(rest);
  if (program === "export") return undefined;
  return `no test knows the command ${JSON.stringify(command)}`;
}

function unknownPackage(words: readonly string[]): string | undefined {
  const unknown = words.find((word) => !packages.has(word.replace(/(?<=.)@[^/]*$/, "")));
  return unknown && `nothing in this repository uses the package ${unknown}`;
}

/** The names of some commands have two words. */
function unknownCommand([first = "", second]: readonly string[]): string | undefined {
  if (first in commands || `${first} ${second}` in commands || first.startsWith("-")) return undefined;
  return `there is no command leasehold ${first}`;
}

/** What is wrong with a script, and with the first word behind it, which names a program of some scripts. */
export function unknownScript(name: string, word?: string): string | undefined {
  if (!scripts.has(name)) return `there is no script ${name}`;
  const own = programs[name];
  if (own === undefined || word === undefined || word.startsWith("-") || Object.hasOwn(own, word))
    return undefined;
  return `npm run ${name} has no ${word}`;
}

function missingFile(files: readonly string[]): string | undefined {
  const missing = files.find((file) => !existsSync(join(root, file)));
  return missing && `there is no file ${missing}`;
}
