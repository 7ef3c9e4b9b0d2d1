import { hostname } from "node:os";
import type { Randomness } from "../protocol/context.ts";
import { limits } from "../schema.ts";
import type { Clock } from "../time/clock.ts";
import { checkText } from "./check-values.ts";

/** A larger step between the wall clock and the monotonic clock means that the process was stored and resumed later. */
const stepMs = 1_000;

/**
 * The owner of a client without an `owner`: it names this process as the process's logs do, and this client within it.
 *
 * It is drawn at its first use. So clones of a snapshot that was taken before (SnapStart) have their own owners. It is
 * drawn anew when the wall clock has jumped: then the process may be a clone of one that has used it.
 */
export class DefaultOwner {
  readonly #randomness: Randomness;
  readonly #clock: Clock;
  #drawn: { readonly owner: string; readonly offsetMs: number } | undefined;

  /** Throws InvalidOptionsError if the source of tokens returns none. */
  constructor(randomness: Randomness, clock: Clock) {
    this.#randomness = randomness;
    this.#clock = clock;
    this.#draw();
  }

  get current(): string {
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    if (this.#drawn === undefined || Math.abs(offsetMs - this.#drawn.offsetMs) > stepMs) {
      this.#drawn = { owner: this.#draw(), offsetMs };
    }
    return this.#drawn.owner;
  }

  #draw(): string {
    const unique = checkText("randomness.token()", this.#randomness.token(), limits.ownerBytes);
    const { AWS_LAMBDA_FUNCTION_NAME: name, AWS_LAMBDA_LOG_STREAM_NAME: stream } = process.env;
    const place =
      name !== undefined && stream !== undefined ? `${name}/${stream}` : `${hostname()}:${process.pid}`;
    return `${place}:${unique.slice(0, 8)}`;
  }
}
