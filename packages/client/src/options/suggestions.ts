/**
 * What callers of other libraries, or of another call, write for an option of this package: lower-case letters, without
 * "ms".
 */
const otherNames: Readonly<Record<string, string>> = {
  leaseDurationMs: "ttl duration lease leaseduration expiresin expiry lockatmostfor",
  lockAtMostForMs: "lockatmostfor",
  waitMs: "timeout waittimeout acquiretimeout wait maxwait",
  retry: "retrydelay retries",
  heartbeat: "keepalive autorenew autoextend renew heartbeat heartbeatinterval",
  owner: "holder ownerid",
  data: "payload metadata",
  signal: "abortsignal",
  tableName: "table",
  dynamodb: "client dynamodbclient documentclient",
  clockSkewMs: "skew",
  permits: "limit max",
};

/** The most wrong letters in a name that counts as misspelt; fewer in a short name. */
const mostMistakes = 2;

/** What to write in place of an unknown option; undefined without a suggestion. */
export function adviceFor(option: string, known: readonly string[]): string | undefined {
  const takes = (name: string): boolean => known.includes(name);
  if (
    (option === "waitMs" || option === "retry") &&
    takes("leaseDurationMs") &&
    takes("owner") &&
    !takes("waitMs")
  ) {
    return "a call whose name begins with try never waits: to wait, use the call without it, such as acquire";
  }
  const word = option.toLowerCase();
  const meant =
    known.find((name) => otherNames[name]?.split(" ").includes(word.replace(/ms$/, ""))) ??
    nearest(word, known);
  return meant && `did you mean ${meant}?`;
}

function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.min(mostMistakes, Math.floor(word.length / 3));
  for (let mistakes = 0; mistakes <= most; mistakes += 1) {
    const name = known.find((each) => isWithin(mistakes, word, each.toLowerCase()));
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Whether at most this many letters have to be added, removed or changed to make one word of the other. */
function isWithin(mistakes: number, one: string, other: string): boolean {
  if (one === other) return true;
  if (mistakes === 0) return false;
  if (one !== "" && one[0] === other[0]) return isWithin(mistakes, one.slice(1), other.slice(1));
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  return [
    [rest, other],
    [one, otherRest],
    [rest, otherRest],
  ].some(([a = "", b = ""]) => isWithin(mistakes - 1, a, b));
}
