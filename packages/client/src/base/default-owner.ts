import { hostname } from "node:os";
import { checkText } from "./check-values.ts";
import type { Clock, Randomness } from "./clock.ts";
import { limits } from "./schema.ts";

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
  #owner = "";
  #offsetMs = Number.NaN;

  /** Throws InvalidOptionsError if the source of tokens returns none. */
  constructor(randomness: Randomness, clock: Clock) {
    this.#randomness = randomness;
    this.#clock = clock;
    this.#draw();
  }

  get current(): string {
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    // At the first use there is no earlier offset.
    if (!(Math.abs(offsetMs - this.#offsetMs) <= stepMs)) {
      this.#owner = this.#draw();
      this.#offsetMs = offsetMs;
    }
    return this.#owner;
  }

  #draw(): string {
    const unique = checkText("randomness.token()", this.#randomness.token(), limits.ownerBytes);
    const { AWS_LAMBDA_FUNCTION_NAME: name, AWS_LAMBDA_LOG_STREAM_NAME: stream } = process.env;
    const place = name && stream ? `${name}/${stream}` : `${hostname()}:${process.pid}`;
    return `${place}:${unique.slice(0, 8)}`;
  }
}
