#!/usr/bin/env node
import { ProcessSignals } from "./exit-codes.ts";
import { runCommandLine } from "./run.ts";

const { stdin, stdout, stderr, env } = process;
const signals = new ProcessSignals();
void runCommandLine(process.argv.slice(2), { stdin, stdout, stderr, env, signals }).then((code) => {
  process.exitCode = code;
});
