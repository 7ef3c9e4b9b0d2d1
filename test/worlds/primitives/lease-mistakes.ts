/** Mistakes that several primitives can have: each is a lease. */
import { LeaseDeadline } from "../../../packages/client/src/core/deadline.ts";
import { ExpiryDetector } from "../../../packages/client/src/core/expiry-detector.ts";
import { isA } from "../../support/lease-writes.ts";
import { isGrant, type Mistakes, type Plant, replacing, without } from "../simulation.ts";

/** Less than a lease, and more than the allowance for skew. */
const tooMuchMs = 2_000;

/** Whatever a record says, it may be taken over so much earlier. */
export const judgingEarly = (byMs: number): Plant =>
  replacing(ExpiryDetector.prototype, "judge", (judge, [record]) => {
    const { reason, claimableInMs } = judge(record);
    const leftMs = Math.max(0, claimableInMs - byMs);
    return { reason: leftMs > 0 ? undefined : (reason ?? "observation"), claimableInMs: leftMs };
  });

/** A holder believes in its lease for so much longer than it lasts. */
export const believingLonger = (byMs: number): Plant =>
  replacing(LeaseDeadline.prototype, "confirm", (confirm, [{ since, forMs }, expiresAt]) =>
    confirm({ since, forMs: forMs + byMs }, expiresAt + byMs),
  );

/** A release ends whatever lease there is. Of an item that nobody holds, the table refuses the copy of its owner. */
export const endingAny: Plant = without({
  of: ["token", "fence"],
  test: "=",
  by: isA("end"),
  left: () => "attribute_exists(#token)",
});

export const twoHolders = /believes to hold/;

export const staleTakeover: Mistakes = {
  "a takeover from a holder that has renewed": [
    without({ of: "version", test: "=" }),
    /believes to hold|hold it at once/,
  ],
};

export const heldGrant: Mistakes = {
  "a grant of what is held": [without({ of: "token", test: "missing", by: isGrant }), twoHolders],
};

/** Takes a lease from somebody who may still believe in it. */
export const hastyExpiry: Mistakes = {
  "an expiry that is judged too early": [judgingEarly(tooMuchMs), twoHolders],
};

export const longBelief: Mistakes = {
  "a holder that believes in its lease for longer than it lasts": [believingLonger(tooMuchMs), twoHolders],
};

export const foreignRelease: Mistakes = {
  "a release that frees another's lease": [endingAny, twoHolders],
};
