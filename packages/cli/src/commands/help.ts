import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { nearest } from "../flags.ts";
import { helpOf, overview } from "../help.ts";
import { shown } from "../terminal/text.ts";
import { commands } from "./index.ts";

export default command({
  usage: "help [COMMAND]",
  details: "The same as leasehold COMMAND --help. leasehold help errors CODE says what an error means.",
  writes: false,
  operands: [0, 2],
  flags: {},
  async run({ operands, terminal }) {
    const name = operands.join(" ");
    const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (operands.length > 0 && entry === undefined) {
      throw new UsageError(
        `${shown(name)} is no command${nearest(name, Object.keys(commands))}; leasehold --help lists them`,
      );
    }
    const lines = entry === undefined ? overview() : helpOf(name, entry, await entry.load());
    for (const line of lines) terminal.print(line);
    return exitCodes.done;
  },
});
