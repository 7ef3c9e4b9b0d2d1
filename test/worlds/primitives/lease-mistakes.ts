import { LeaseDeadline } from "../../../packages/client/src/core/deadline.ts";
import { ExpiryDetector } from "../../../packages/client/src/core/expiry-detector.ts";
import { kindOf } from "../../support/lease-writes.ts";
import type { Tamper } from "../network.ts";
import { type Mistake, type Planted, replacing, withoutTests } from "../simulation.ts";

/** Less than a lease, and more than the allowance for skew. */
const tooMuchMs = 2_000;

/** Whatever a record says, it may be taken over so much earlier. */
export function judgingEarly(byMs: number): Planted["plant"] {
  return replacing(
    ExpiryDetector.prototype,
    "judge",
    (judge) =>
      function (this: ExpiryDetector, record) {
        const { reason, claimableInMs } = judge.call(this, record);
        const leftMs = Math.max(0, claimableInMs - byMs);
        return { reason: leftMs > 0 ? undefined : (reason ?? "observation"), claimableInMs: leftMs };
      },
  );
}

/** A holder believes in its lease for so much longer than it lasts. */
export function believingLonger(byMs: number): Planted["plant"] {
  return replacing(
    LeaseDeadline.prototype,
    "confirm",
    (confirm) =>
      function (this: LeaseDeadline, { since, forMs }, expiresAt) {
        confirm.call(this, { since, forMs: forMs + byMs }, expiresAt + byMs);
      },
  );
}

/** A release ends whatever lease there is. Of an item that nobody holds, the table refuses the copy of its owner. */
export const endingAny: Tamper = withoutTests(
  ({ attribute, test, write }) =>
    test === "=" && ["token", "fence"].includes(attribute) && kindOf(write) === "end",
  () => "attribute_exists(#token)",
);

/** Takes a lease from somebody who may still believe in it. */
export const hastyExpiry: Mistake = {
  what: "an expiry that is judged too early",
  plant: judgingEarly(tooMuchMs),
  violation: /believes to hold/,
};

export const longBelief: Mistake = {
  what: "a holder that believes in its lease for longer than it lasts",
  plant: believingLonger(tooMuchMs),
  violation: /believes to hold/,
};

export const foreignRelease: Mistake = {
  what: "a release that frees another's lease",
  tamper: endingAny,
  violation: /believes to hold/,
};
