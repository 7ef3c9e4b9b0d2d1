import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { choice, duration, yes } from "../flags.ts";
import { TopScreen } from "../top/top-screen.ts";
import { paceFlags, paceOf } from "./shared/polling.ts";

export default command({
  usage: "top [PREFIX]",
  details: `
Shows the table on a full screen, again and again.

q      quit                         enter  everything about the chosen key
s      sort by age, key or end      x      ask its holder to stop (WRITES; asks first)
/      only keys with a text        X      break it (WRITES; asks first)
Arrows, j and k choose a row. With --read-only, x and X do nothing.`,
  writes: false,
  operands: [0, 1],
  flags: {
    every: duration("how often to look (default 2s)"),
    ...paceFlags,
    sort: choice(
      ["age", "key", "ends"],
      "the longest held first, by key (default), or the next to end first",
    ),
    all: yes("every primitive: job runs, task sets and caches too"),
    scan: yes("read the table however large it is"),
  },
  async run(call) {
    const { flags, operands } = call;
    const [prefix] = operands;
    const { sort = "key", all, scan } = flags;
    await new TopScreen(call, { prefix, sort, all, scan, pauseAfter: paceOf(flags) }).run();
    return exitCodes.done;
  },
});
