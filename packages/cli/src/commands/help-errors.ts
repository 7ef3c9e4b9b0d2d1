import { command } from "../command.ts";
import { docsAddress } from "../docs.ts";
import { texts } from "../errors/texts.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { nearest } from "../flags.ts";
import { jsonText, shown } from "../terminal/text.ts";

export default command({
  usage: "help errors [CODE]",
  details: "Says what an error's code means, when it comes and what to do. Without a CODE it lists them.",
  writes: false,
  operands: [0, 1],
  flags: {},
  async run({ operands, printer, terminal }) {
    const codes = Object.keys(texts);
    const [given] = operands;
    if (given === undefined) {
      if (printer.isForPeople) for (const code of codes) terminal.print(code);
      else terminal.print(jsonText(codes, 2));
      return exitCodes.done;
    }
    const code = given.toUpperCase();
    const text = Object.hasOwn(texts, code) ? texts[code] : undefined;
    if (text === undefined) {
      throw new UsageError(
        `${shown(given)} is no error code${nearest(code, codes)}; leasehold help errors lists them`,
      );
    }
    const address = docsAddress(`errors.md#${code.toLowerCase()}`);
    printer.document("error", { code, text, docs: address }, () => [
      code,
      "",
      ...text.split("\n"),
      "",
      `see ${address}`,
    ]);
    return exitCodes.done;
  },
});
