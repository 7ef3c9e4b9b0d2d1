#!/usr/bin/env node
import { runCommandLine } from "./run.ts";

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => interruption.abort(new Error(signal)));
}
const { stdin, stdout, stderr, env } = process;
void runCommandLine(process.argv.slice(2), { stdin, stdout, stderr, env, signal: interruption.signal }).then(
  (code) => {
    process.exitCode = code;
  },
);
