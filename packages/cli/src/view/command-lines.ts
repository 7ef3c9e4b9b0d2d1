// Ready-made command lines to copy into a shell: a key stays one argument, whatever it contains.

/** Quotes an argument for a POSIX shell, so that neither the shell nor the terminal interprets it. */
export function quoted(argument: string): string {
  if (/^[\w@%+=:,./-]+$/.test(argument)) return argument;
  if (!/[\p{C}\u2028\u2029]/u.test(argument)) return `'${argument.replaceAll("'", `'\\''`)}'`;
  const escaped = argument.replace(/[\\']|[\p{C}\u2028\u2029]/gu, (character) =>
    character === "\\" || character === "'" ? `\\${character}` : bytesOf(character),
  );
  return `$'${escaped}'`;
}

/** Bytes in octal: bash, zsh and ksh support them in `$'…'`. */
function bytesOf(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/** `leasehold stop 'my key' --token 1620e1bd`. A key that begins like a flag comes after `--`. */
export function commandLine(
  name: string,
  operands: readonly string[],
  flags: readonly string[] = [],
): string {
  const own = operands.map(quoted);
  const others = flags.map((flag) => (flag.startsWith("--") ? flag : quoted(flag)));
  const words = operands.some((operand) => operand.startsWith("-"))
    ? [...others, "--", ...own]
    : [...own, ...others];
  return ["leasehold", name, ...words].join(" ");
}

/** The shortest prefix of a token. */
export const shortestPrefix = 8;

/** The shortest prefix of a token, of at least 8 characters, that no other of the tokens has. */
export function tokenPrefix(token: string, tokens: readonly string[]): string {
  const others = tokens.filter((other) => other !== token);
  let length = shortestPrefix;
  while (length < token.length && others.some((other) => other.startsWith(token.slice(0, length))))
    length += 1;
  return token.slice(0, length);
}
