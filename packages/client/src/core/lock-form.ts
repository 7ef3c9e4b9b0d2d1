import type { LeaseRecord } from "../base/lease-record.ts";
import { isOpenTo, readRecord } from "../base/record.ts";
import type { Item } from "../base/store.ts";
import {
  type Cancellation,
  cancel,
  type Grant,
  release,
  renew,
  revokeToken,
  stillHeld,
  take,
} from "../statements/lock.ts";
import type { Write } from "../statements/statement.ts";
import type { ExpiryDetector } from "./expiry-detector.ts";
import { type Availability, type Ending, type LeaseForm, type Renewal, unblocked } from "./form.ts";

/** A lease that has an item to itself: the lock's own form, and that of runs. */
export class LockForm implements LeaseForm {
  readonly key: string;
  readonly sortKey: string;

  constructor(key: string, sortKey: string) {
    this.key = key;
    this.sortKey = sortKey;
  }

  acquire(grant: Grant, [passed]: readonly LeaseRecord[]): Write {
    return take(this, grant, passed);
  }

  renew(renewal: Renewal): Write {
    return renew(this, renewal);
  }

  release(ending: Ending): Write {
    return release(this, ending);
  }

  cancel(cancellation: Cancellation): Write {
    return cancel(this, cancellation);
  }

  /**
   * A late acquire that takes over nobody needs a free lock, and on a free lock `cancel` has revoked the token.
   */
  revoke({ token }: Cancellation, passes: boolean): Write | undefined {
    return passes ? revokeToken(this, token) : undefined;
  }

  proof(lease: LeaseRecord): Write {
    return stillHeld(this, lease);
  }

  leasesIn(item: Item | undefined): readonly LeaseRecord[] {
    const record = readRecord(item);
    return record === undefined ? [] : [record];
  }

  judge(
    item: Item | undefined,
    { owner, resumes }: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Availability {
    const [record] = this.leasesIn(item);
    if (record === undefined) return unblocked;
    const expiry = detector.judge(record);
    const reason = resumes && isOpenTo(record, owner) ? "sameOwner" : expiry.reason;
    if (reason === undefined) return { blocker: record, claimableInMs: expiry.claimableInMs, takeovers: [] };
    return { blocker: record, claimableInMs: 0, takeovers: [{ reason, from: record }] };
  }
}
