// The access to the console. It refuses another origin, a rebound name and a person without the address, before it
// reads anything from the table.

import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** How people prove their identity. */
export interface AccessOptions {
  /** The secret that opens a session: in the fragment of the address, or typed. */
  readonly secret: string;
  /** Whether a host with its port is the console's: `127.0.0.1:8787`. */
  readonly isOwnHost: (host: string) => boolean;
  /** The public address under which a proxy shows the console. @default - no proxy */
  readonly publicUrl: URL | undefined;
  /** The header in which the proxy names the person. @default - no proxy */
  readonly trustedHeader: string | undefined;
}

/** Why a request is refused. */
export interface Refusal {
  readonly status: 401 | 403 | 421;
  readonly reason: string;
}

/** The header that a write must have: a page of another origin cannot set it. */
export const writeHeader = "x-leasehold-write";

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
export class Access {
  readonly #options: AccessOptions;
  /** The value of the cookie. The cookie does not contain the secret itself. */
  readonly #session = randomBytes(32).toString("base64url");

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Why a request is refused, whatever it asks for; undefined if it is not refused. */
  refusalOf({ headers, method }: IncomingMessage): Refusal | undefined {
    const host = headers.host ?? "";
    if (!this.#isPublic(host) && !this.#options.isOwnHost(host)) {
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
