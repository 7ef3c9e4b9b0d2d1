// The console's HTTP server: pages, the headers that restrict what a page can do, and the access. It refuses another
// origin, a rebound name and a person without the address, before it reads anything from the table.

import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parsedJson } from "@leasehold/client/internal";
import { exitCodeOf, exitCodes, messageOf } from "../exit-codes.ts";
import { documentOf, type Environment, icons, lockedPage, type Page, refusalPage } from "./layout.ts";
import { script } from "./script.ts";
import { style } from "./style.ts";

/** How people prove their identity. */
interface AccessOptions {
  /** The secret that opens a session: in the fragment of the address, or typed. */
  readonly secret: string;
  /** Whether a host with its port is the console's, which listens on this port: `127.0.0.1:8787`. */
  readonly isOwnHost: (host: string, port: number) => boolean;
  /** The public address under which a proxy shows the console. @default - no proxy */
  readonly publicUrl: URL | undefined;
  /** The header in which the proxy names the person. @default - no proxy */
  readonly trustedHeader: string | undefined;
}

/** The header that a write must have: a page of another origin cannot set it. */
const writeHeader = "x-leasehold-write";

/** Reads a Host header, with or without a port; undefined if it is no host. */
export function hostIn(header: string): URL | undefined {
  const address = `http://${header.toLowerCase()}`;
  if (!/^[\w.:[\]-]+$/.test(header) || !URL.canParse(address)) return undefined;
  return new URL(address);
}

/**
 * A browser sends a host's cookies to all of its ports. With one name, two consoles would end each other's sessions.
 */
function cookieName(host: string): string {
  return `leasehold-console-${hostIn(host)?.port || 80}`;
}

/** Checks hosts, origins and sessions. */
class Access {
  readonly #options: AccessOptions;
  /** The value of the cookie. The cookie does not contain the secret itself. */
  readonly #session = randomBytes(32).toString("base64url");

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Why a request is refused, whatever it asks for; undefined if it is not refused. */
  refusalOf({ headers, method, socket }: IncomingMessage) {
    const host = headers.host ?? "";
    if (!this.#isPublic(host) && !this.#options.isOwnHost(host, socket.localPort ?? 0)) {
      const advice = "the name may be rebound; --public-url names one that is right";
      return { status: 421, reason: `this host is not the console's: ${advice}` };
    }
    const { origin, "sec-fetch-site": site } = headers;
    if (origin !== undefined && origin !== this.#originOf(host))
      return { status: 403, reason: "the request is of another origin" };
    if (site !== undefined && site !== "same-origin" && !(site === "none" && method === "GET")) {
      // A link from elsewhere may open a page. The browser sends no cookie with it, so it has to open a session first.
      if (!(method === "GET" && headers["sec-fetch-mode"] === "navigate")) {
        return { status: 403, reason: "the request is of another site" };
      }
    }
    if (method !== "GET" && method !== "HEAD" && headers[writeHeader] !== "1") {
      return { status: 403, reason: `the header ${writeHeader} is missing` };
    }
    return undefined;
  }

  /** Whether a request has a session, or comes from the trusted proxy. */
  isOpenTo({ headers }: IncomingMessage): boolean {
    const { trustedHeader } = this.#options;
    if (trustedHeader !== undefined) return this.personOf({ headers }) !== undefined;
    const name = cookieName(headers.host ?? "");
    return cookiesOf(headers.cookie, name).some((value) => isSame(value, this.#session));
  }

  /** The person, as the proxy names it. */
  personOf({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
    const { trustedHeader } = this.#options;
    const value = trustedHeader === undefined ? undefined : headers[trustedHeader.toLowerCase()];
    return typeof value === "string" && value !== "" ? value.slice(0, 200) : undefined;
  }

  /** The Set-Cookie header of a new session; undefined if the secret is wrong. */
  open(secret: string, { headers: { host = "" } }: Pick<IncomingMessage, "headers">): string | undefined {
    if (!isSame(secret, this.#options.secret)) return undefined;
    const secure = this.#originOf(host).startsWith("https:") ? "; Secure" : "";
    return `${cookieName(host)}=${this.#session}; HttpOnly; SameSite=Strict; Path=/${secure}`;
  }

  #isPublic(host: string): boolean {
    return this.#options.publicUrl?.host === host;
  }

  #originOf(host: string): string {
    return this.#isPublic(host) ? (this.#options.publicUrl?.origin ?? "") : `http://${host}`;
  }
}

function cookiesOf(header: string | undefined, wanted: string): readonly string[] {
  return (header ?? "")
    .split(";")
    .map((part) => part.trim().split("="))
    .flatMap(([name, value]) => (name === wanted && value !== undefined ? [value] : []));
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface ActionResult {
  readonly status: number;
  readonly message: string;
}

export interface ConsoleContent {
  readonly environment: Environment;
  /** The pause between two looks of a page. */
  readonly everyMs: () => number;
  /** Makes a page; undefined without one. */
  page(request: PageRequest): Promise<Page | undefined>;
  act(
    name: string,
    fields: Readonly<Record<string, string>>,
    person: string | undefined,
  ): Promise<ActionResult>;
  /** Called with each error of a page or a write, so that no error is lost. */
  report(error: unknown): void;
}

const mostBodyBytes = 65_536;

/** What pages load. */
const files: Readonly<Record<string, readonly [type: string, content: string]>> = {
  "/script.js": ["text/javascript", script],
  "/style.css": ["text/css", style],
  "/read.svg": ["image/svg+xml", icons.read],
  "/write.svg": ["image/svg+xml", icons.write],
};

const headers: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

export class ConsoleServer {
  readonly #content: ConsoleContent;
  readonly #access: Access;
  readonly #server: Server;

  constructor(content: ConsoleContent, access: AccessOptions) {
    this.#content = content;
    this.#access = new Access(access);
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Listens, and returns the port. Rejects if the port is taken. */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      // A wrong address is the caller's mistake, like a wrong flag.
      const isUsage = exitCodeOf(error) === exitCodes.usage;
      if (!isUsage) this.#content.report(error);
      const reason = messageOf(error);
      if (response.headersSent) response.destroy();
      // A page names the table, so only those with a session may see it.
      else if (!this.#access.isOpenTo(request)) send(response, 500, "text/plain", "something went wrong\n");
      else if (isUsage) this.#sendPage(response, "/", refusalPage(400, "No such page", reason));
      else this.#sendPage(response, "/", refusalPage(500, "Something went wrong", reason));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = this.#access.refusalOf(request);
    if (refusal !== undefined) return send(response, refusal.status, "text/plain", `${refusal.reason}\n`);
    const { url = "/" } = request;
    const base = "http://console";
    if (!URL.canParse(url, base)) return send(response, 400, "text/plain", "this is no address of a page\n");
    const { pathname, searchParams } = new URL(url, base);
    if (request.method === "POST") return this.#post(request, response, pathname);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return send(response, 405, "text/plain", "GET and POST are allowed\n");
    }
    const file = Object.hasOwn(files, pathname) ? files[pathname] : undefined;
    if (file !== undefined) return send(response, 200, ...file);
    if (!this.#access.isOpenTo(request)) return this.#sendPage(response, pathname, lockedPage);
    const page = await this.#content.page({ path: pathname, query: searchParams });
    this.#sendPage(
      response,
      pathname,
      page ?? refusalPage(404, "No such page", `There is no page at ${pathname}.`),
    );
  }

  async #post(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    // Ignored: who has sent it has left before its end, and waits for no answer.
    const body = await bodyOf(request).catch(() => undefined);
    if (body === undefined) return send(response, 413, "text/plain", "the body is too large\n");
    if (path === "/session") {
      const cookie = this.#access.open(body.trim(), request);
      if (cookie === undefined) return send(response, 401, "text/plain", "this secret opens nothing\n");
      response.setHeader("Set-Cookie", cookie);
      return send(response, 204, "text/plain", "");
    }
    if (!this.#access.isOpenTo(request)) return send(response, 401, "text/plain", "no session\n");
    const name = /^\/act\/([a-z-]+)$/.exec(path)?.[1];
    if (name === undefined) return send(response, 404, "text/plain", "no such action\n");
    const fields = fieldsIn(body);
    if (fields === undefined)
      return sendJson(response, { status: 400, message: "the body is not an object of texts" });
    if (this.#content.environment.isReadOnly) {
      return sendJson(response, { status: 403, message: "The console is read-only: start it with --write." });
    }
    return sendJson(response, await this.#content.act(name, fields, this.#access.personOf(request)));
  }

  #sendPage(response: ServerResponse, path: string, page: Page): void {
    const { environment, everyMs } = this.#content;
    const document = documentOf(page, path, environment, everyMs());
    send(response, page.status ?? 200, "text/html", document.toString());
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { ...headers, "Content-Type": `${type}; charset=utf-8` });
  response.end(body);
}

function sendJson(response: ServerResponse, result: ActionResult): void {
  send(response, result.status, "application/json", JSON.stringify({ message: result.message }));
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function fieldsIn(body: string): Readonly<Record<string, string>> | undefined {
  const parsed = parsedJson(body)?.value;
  const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
  if (!isObject || !Object.values(parsed).every((value) => typeof value === "string")) return undefined;
  return parsed as Record<string, string>;
}
