/**
 * Checks a deployment: that the contracts hold on its lease table, that requests are as many as the documentation says,
 * and that a singleton job and a leased workflow of it run one at a time.
 *
 * Without arguments it deploys the app on this machine, and checks that. See `usage` in arguments.ts.
 *
 * Works under keys of its own, and removes what it made, whatever ends it. Exits with 0 if all checks hold and nothing is
 * left, with 1 if not, and with 128 and its number after a signal.
 */
import { acceptance } from "./acceptance.ts";

const code = await acceptance(process.argv.slice(2));
// A pipe takes 64 KB at once: an exit before it has taken the rest would cut the table off.
await new Promise((resolve) => process.stdout.write("", resolve));
process.exit(code);
