/** Runs the program that an npm script and the word behind it name. Alone, or with `--help`, the script lists what it has. */
import { programs } from "./programs.ts";

const [script = "", word = ""] = process.argv.slice(2);
const own = new Map(Object.entries(programs[script] ?? {}));
const name = word.startsWith("-") ? "" : word;
const asksForHelp = word === "-h" || word === "--help";
const program = asksForHelp ? undefined : own.get(name);

// A signal to `npm run` ends npm and its shell alone: a program of hours would go on without them.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, "SIGTERM");
}, 1_000).unref();

if (program !== undefined) {
  // The rest are its arguments, which it reads as if it had been started alone.
  process.argv.splice(2, name === "" ? 1 : 2);
  await program.run(process.argv[2]);
} else if (word === "" || asksForHelp) {
  console.log(list());
} else {
  console.error(`npm run ${script} has no ${word}. It has:\n\n${list()}`);
  process.exitCode = 2;
}

function list(): string {
  const commands = [...own].map(([name, { what }]) => ({ command: commandOf(name), what }));
  const widest = Math.max(...commands.map(({ command }) => command.length));
  return commands.map(({ command, what }) => `${command.padEnd(widest)}  ${what}`).join("\n");
}

function commandOf(name: string): string {
  return name === "" ? `npm run ${script}` : `npm run ${script} -- ${name}`;
}
