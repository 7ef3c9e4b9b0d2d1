import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Serves the packed archives as npm's registry would serve the published packages. So npm finds what they depend on by itself,
 * as it does for users: `@leasehold:registry=<address>` in an .npmrc.
 */
export async function serveArchives(
  archives: ReadonlyMap<string, string>,
): Promise<{ readonly address: string; close(): void }> {
  const contents = new Map<
    string,
    { readonly archive: Buffer; readonly manifest: Record<string, unknown> }
  >();
  for (const [name, file] of archives) {
    const { stdout } = await run("tar", ["-xzOf", file, "package/package.json"]);
    contents.set(name, { archive: await readFile(file), manifest: JSON.parse(stdout) });
  }
  const server = createServer(({ url = "/" }, response) => {
    const path = decodeURIComponent(url).slice(1);
    const name = path.replace(/\/-\/archive\.tgz$/, "");
    const found = contents.get(name);
    if (found === undefined) {
      response.writeHead(404).end("{}");
    } else if (path !== name) {
      response.end(found.archive);
    } else {
      const { archive, manifest } = found;
      const version = String(manifest.version);
      const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
      const dist = { tarball: `${address}${name}/-/archive.tgz`, integrity };
      const versions = { [version]: { ...manifest, dist } };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    address,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
