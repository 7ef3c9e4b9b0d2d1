// Who may talk to the console. Another origin, a rebound name and a person without the address are all refused, before
// anything is read from the table.

import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** How people prove themselves. */
export interface AccessOptions {
  /** The secret that opens a session, in the fragment of the address. */
  readonly secret: string;
  /** The hosts, with their ports, under which the console is reached: `127.0.0.1:8787`. */
  readonly hosts: ReadonlySet<string>;
  /** Whether it is reached by https, through something in front of it. */
  readonly isHttps: boolean;
  /** The header in which something in front of it says who the person is. @default - nothing is in front */
  readonly trustedHeader: string | undefined;
}

/** Why a request is refused. */
export interface Refusal {
  readonly status: 401 | 403 | 421;
  readonly reason: string;
}

/** The header that a write has to carry: a page of another origin cannot set it. */
export const writeHeader = "x-leasehold-write";

const cookieName = "leasehold-console";

/** Checks hosts, origins and sessions. */
export class Access {
  readonly #options: AccessOptions;
  /** What the cookie holds. The secret itself stays out of it. */
  readonly #session = randomBytes(32).toString("base64url");

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Why a request from there is refused whatever it asks for; undefined where it is not. */
  refusalOf({ headers, method }: IncomingMessage): Refusal | undefined {
    const { hosts, isHttps } = this.#options;
    const host = headers.host ?? "";
    if (!hosts.has(host))
      return { status: 421, reason: "this host is not the console's: the name may be rebound" };
    const { origin, "sec-fetch-site": site } = headers;
    const own = `${isHttps ? "https" : "http"}://${host}`;
    if (origin !== undefined && origin !== own)
      return { status: 403, reason: "the request is of another origin" };
    if (site !== undefined && site !== "same-origin" && !(site === "none" && method === "GET")) {
      // A link from elsewhere may open a page: the cookie is not sent with it, so it has to open a session first.
      if (!(method === "GET" && headers["sec-fetch-mode"] === "navigate")) {
        return { status: 403, reason: "the request is of another site" };
      }
    }
    if (method !== "GET" && method !== "HEAD" && headers[writeHeader] !== "1") {
      return { status: 403, reason: `the header ${writeHeader} is missing` };
    }
    return undefined;
  }

  /** Whether a request has a session, or comes from what is trusted in front of the console. */
  isOpenTo({ headers }: IncomingMessage): boolean {
    const { trustedHeader } = this.#options;
    if (trustedHeader !== undefined) return this.personOf({ headers }) !== undefined;
    return cookiesOf(headers.cookie).some((value) => isSame(value, this.#session));
  }

  /** Who the person is, as what is in front of the console says. */
  personOf({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
    const { trustedHeader } = this.#options;
    const value = trustedHeader === undefined ? undefined : headers[trustedHeader.toLowerCase()];
    return typeof value === "string" && value !== "" ? value.slice(0, 200) : undefined;
  }

  /** The Set-Cookie header of a new session; undefined where the secret is wrong. */
  open(secret: string): string | undefined {
    if (!isSame(secret, this.#options.secret)) return undefined;
    const secure = this.#options.isHttps ? "; Secure" : "";
    return `${cookieName}=${this.#session}; HttpOnly; SameSite=Strict; Path=/${secure}`;
  }
}

function cookiesOf(header: string | undefined): readonly string[] {
  return (header ?? "")
    .split(";")
    .map((part) => part.trim().split("="))
    .flatMap(([name, value]) => (name === cookieName && value !== undefined ? [value] : []));
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
