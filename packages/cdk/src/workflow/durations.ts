import { Duration, Token } from "aws-cdk-lib";

/** Gives a duration in milliseconds, or refuses it. */
export function checkedMs(prop: string, duration: Duration, least: Duration, most: Duration): number {
  if (Token.isUnresolved(duration)) throw new Error(`${prop} is a token: a state machine needs a number`);
  const ms = duration.toMilliseconds();
  if (ms < least.toMilliseconds() || ms > most.toMilliseconds()) {
    const range = `${least.toHumanString()} to ${most.toHumanString()}`;
    throw new Error(`${prop} is ${duration.toHumanString()}: choose from ${range}`);
  }
  return ms;
}

/** How long leases, waits and retentions may be at most. */
export const aYear: Duration = Duration.days(365);
