import { Duration, Tokenization } from "aws-cdk-lib";

/** Returns a duration in milliseconds, or refuses it. */
export function checkedMs(prop: string, duration: Duration, least: Duration, most: Duration): number {
  checkKnown(prop, duration, "a state machine's definition is made of it");
  const ms = duration.toMilliseconds();
  if (ms < least.toMilliseconds() || ms > most.toMilliseconds()) {
    const range = `${least.toHumanString()} to ${most.toHumanString()}`;
    throw new Error(`${prop} is ${duration.toHumanString()}: choose from ${range}`);
  }
  return ms;
}

/** Refuses a duration that only the deployment knows, if a calculation needs it. */
export function checkKnown(prop: string, duration: Duration, reason: string): void {
  if (!duration.isUnresolved()) return;
  throw new Error(`${prop} is known at deployment only, and ${reason}: give a Duration of a plain number`);
}

/** A duration in milliseconds, as text, also where the number is known at deployment only. */
export function millisecondsText(prop: string, duration: Duration): string {
  if (duration.isUnresolved() && duration.unitLabel() !== "millis") {
    throw new Error(
      `${prop} is known at deployment only, in ${duration.unitLabel()}, and CloudFormation cannot convert it to the ` +
        `milliseconds that the function reads: give it as Duration.millis(...), or as a plain number`,
    );
  }
  return Tokenization.stringifyNumber(duration.toMilliseconds());
}

/** The longest lease, wait and retention. */
export const aYear: Duration = Duration.days(365);
