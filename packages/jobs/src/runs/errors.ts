import { brandClass, LeaseError } from "@leasehold/client/internal";

/** The slot has used up its attempts, and none succeeded. Nothing is held. A larger `maxAttempts` allows more. */
export class RunsExhaustedError extends LeaseError {
  static {
    brandClass(RunsExhaustedError, "RunsExhaustedError");
  }
  declare readonly job: string;
  declare readonly slot: string;
  /** How many attempts there were. */
  declare readonly attempts: number;
  declare readonly maxAttempts: number;
  /** The remark of the last failed attempt, if there is one. */
  declare readonly remark: string | undefined;

  constructor(
    job: string,
    slot: string,
    used: { readonly attempts: number; readonly maxAttempts: number; readonly remark: string | undefined },
  ) {
    const { attempts, maxAttempts, remark } = used;
    super(
      "LEASE_RUNS_EXHAUSTED",
      `the run ${slot} of ${JSON.stringify(job)} has had ${attempts} of ${maxAttempts} attempts` +
        `${remark === undefined ? "" : ` (${remark})`}: fix its cause and raise maxAttempts, or skip the slot`,
      { job, slot, attempts, maxAttempts, remark },
    );
  }
}
