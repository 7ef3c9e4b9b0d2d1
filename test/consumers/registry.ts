import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** A package, as npm's registry shows it. */
interface Packument {
  readonly name: string;
  readonly "dist-tags": Record<string, string>;
  readonly versions: Record<string, Manifest>;
}

interface Manifest {
  readonly version: string;
  readonly dist: { tarball: string; readonly integrity: string };
}

/** What `npm publish` sends: a packument of one version, and its archive. */
type Published = Packument & { readonly _attachments: Readonly<Record<string, { readonly data: string }>> };

/**
 * A registry on this machine, empty at first. It takes what `npm publish` sends, and npm installs from it what was published:
 * `@leasehold:registry=<address>` in an .npmrc.
 */
export class Registry implements Disposable {
  /** How many more packages it takes: it stores the last one, and its answer is lost. */
  takes = Number.POSITIVE_INFINITY;
  readonly #packages = new Map<string, Packument>();
  readonly #archives = new Map<string, Buffer>();
  readonly #server = createServer((request, response) => this.#answer(request, response));

  static async start(): Promise<Registry> {
    const registry = new Registry();
    registry.#server.listen(0, "127.0.0.1");
    await once(registry.#server, "listening");
    return registry;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** The published archives, by the packages' names. */
  get published(): ReadonlyMap<string, Buffer> {
    return this.#archives;
  }

  /** The version under a tag. */
  tagged(name: string, tag: string): string | undefined {
    return this.#packages.get(name)?.["dist-tags"][tag];
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(request.url ?? "/").slice(1);
    const name = path.replace(/\/-\/archive\.tgz$/, "");
    if (request.method === "PUT") await this.#publish(name, request, response);
    else if (!this.#packages.has(name)) response.writeHead(404).end("{}");
    else if (path !== name) response.end(this.#archives.get(name));
    else response.setHeader("content-type", "application/json").end(JSON.stringify(this.#packages.get(name)));
  }

  /** As npm's registry: a version is published once, and the first one is the latest, whatever its tag is. */
  async #publish(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { _attachments, ...sent } = JSON.parse((await buffer(request)).toString()) as Published;
    const [manifest] = Object.values(sent.versions);
    const [archive] = Object.values(_attachments);
    if (manifest === undefined || archive === undefined) throw new Error(`npm has sent nothing of ${name}`);
    const known = this.#packages.get(name);
    if (known?.versions[manifest.version] !== undefined) {
      const error = `You cannot publish over the previously published versions: ${manifest.version}.`;
      response.writeHead(403).end(JSON.stringify({ error }));
      return;
    }
    const data = Buffer.from(archive.data, "base64");
    const integrity = `sha512-${createHash("sha512").update(data).digest("base64")}`;
    if (manifest.dist.integrity !== integrity) throw new Error(`${name} is not what npm has hashed`);
    manifest.dist.tarball = `${this.address}${name}/-/archive.tgz`;
    this.#archives.set(name, data);
    this.#packages.set(name, {
      name,
      "dist-tags": { latest: manifest.version, ...known?.["dist-tags"], ...sent["dist-tags"] },
      versions: { ...known?.versions, ...sent.versions },
    });
    this.takes -= 1;
    if (this.takes > 0) response.writeHead(201).end("{}");
    else request.socket.destroy();
  }
}
