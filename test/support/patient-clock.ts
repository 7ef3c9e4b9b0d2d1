import { ManualClock } from "@leasehold/client/testing";

/** A clock to move that stands still while requests are under way: how long an engine takes costs no lease its time. */
export class PatientClock extends ManualClock {
  #idle: (() => Promise<void>) | undefined;

  /** Time passes only when this resolves. */
  waitsFor(idle: () => Promise<void>): void {
    this.#idle = idle;
  }

  protected override async settle(): Promise<void> {
    await super.settle();
    await this.#idle?.();
  }
}
