/**
 * Measures what leases cost, or with `--peers` what other locks cost beside them.
 *
 *     npm run bench [-- --engine=dynoxide]
 *     npm run bench -- --peers [--quick] [--write] [--engine=dynoxide]
 *     npm run bench -- --peers --page
 *
 * `--quick` measures for a minute, which shows that everything runs. `--write` keeps the results, and writes the page and the
 * charts from them; `--page` only writes these, from the results that were kept.
 */
import { parseArgs } from "node:util";
import { type LocalEngineName, startEngine } from "@leasehold/engine";

const { values } = parseArgs({
  options: {
    engine: { type: "string" },
    peers: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    page: { type: "boolean", default: false },
  },
});
if (values.page) {
  const { writePage } = await import("./peers/page.ts");
  await writePage();
} else {
  const chosen = values.engine as LocalEngineName | undefined;
  await using engine = await startEngine(chosen === undefined ? {} : { engine: chosen });
  if (values.peers) {
    const { benchPeers } = await import("./peers/main.ts");
    await benchPeers(engine, values);
  } else {
    const { benchOwnCosts } = await import("./own-costs.ts");
    await benchOwnCosts(engine);
  }
}
