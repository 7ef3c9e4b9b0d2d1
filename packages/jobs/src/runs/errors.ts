import { brandClass, LeaseError } from "@leasehold/client/internal";

/** The slot has had all its attempts, and none succeeded. Nothing is held; a larger `maxAttempts` allows more. */
export class RunsExhaustedError extends LeaseError {
  static {
    brandClass(RunsExhaustedError, "RunsExhaustedError");
  }
  override readonly name: string = "RunsExhaustedError";
  readonly job: string;
  readonly slot: string;
  /** How many attempts there were. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** What the last attempt that failed left behind, if it left anything. */
  readonly remark: string | undefined;

  constructor(
    job: string,
    slot: string,
    spent: { readonly attempts: number; readonly maxAttempts: number; readonly remark: string | undefined },
  ) {
    const { attempts, maxAttempts, remark } = spent;
    super(
      "LEASE_RUNS_EXHAUSTED",
      `the run ${slot} of ${JSON.stringify(job)} has had ${attempts} of ${maxAttempts} attempts` +
        `${remark === undefined ? "" : ` (${remark})`}: mend its cause and raise maxAttempts, or skip it`,
    );
    this.job = job;
    this.slot = slot;
    this.attempts = attempts;
    this.maxAttempts = maxAttempts;
    this.remark = remark;
  }
}
