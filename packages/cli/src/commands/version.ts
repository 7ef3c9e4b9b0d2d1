import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { version } from "../version.ts";

export default command({
  usage: "version",
  writes: false,
  flags: {},
  async run({ printer }) {
    printer.document("version", { version, node: process.versions.node }, () => [version]);
    return exitCodes.done;
  },
});
