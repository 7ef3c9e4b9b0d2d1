/** Builds the site of the docs, or with `dev` serves it and follows what is written in docs/. */
import { spawnSync } from "node:child_process";
import { watch } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { build, createServer } from "vitepress";
import { docs, pages } from "./links.ts";

const [command] = process.argv.slice(2);
if (command !== undefined && command !== "dev")
  throw new Error(`${command} is no command; allowed: none, or dev`);

// In a process of its own: TypeDoc takes more than a gigabyte, which is free again then.
const { status } = spawnSync(process.execPath, ["--import", "tsx", join(import.meta.dirname, "pages.ts")], {
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);
if (command === undefined) {
  await build(import.meta.dirname);
} else {
  watch(docs, { recursive: true }, (_change, file) => {
    // Ignored: a file that is gone by now, as editors leave them behind.
    if (file !== null && file !== "README.md")
      void cp(join(docs, file), join(pages, file), { recursive: true }).catch(() => {});
  });
  const server = await createServer(import.meta.dirname);
  await server.listen();
  server.printUrls();
}
