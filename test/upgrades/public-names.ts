/** A declaration of a report, and a member of one: of the first level, which is what users write. */
const declaration =
  /^(?:abstract )?(?:class|interface|function|const|type|enum) (\w+)|^(\w+): of another package$/;
const member = /^ {4}(?:(?:static|abstract|readonly|get|set) )*(\w+|\[[\w.]+\])[(<?:]/;

/** What users can name, of a report of what can be imported: `@leasehold/jobs JobRuns.run`. */
export function publicNames(report: string): ReadonlySet<string> {
  const names = new Set<string>();
  let [entry, owner] = ["", ""];
  for (const line of report.split("\n")) {
    if (line.startsWith("## ")) entry = line.slice("## ".length);
    const [, own, foreign] = declaration.exec(line) ?? [];
    const [, part] = member.exec(line) ?? [];
    if (own !== undefined || foreign !== undefined) {
      owner = `${entry} ${own ?? foreign}`;
      names.add(owner);
    } else if (part !== undefined && part !== "constructor") names.add(`${owner}.${part}`);
  }
  return names;
}

/** The names of a report that a later one has no more. */
export function namesGone(earlier: string, later: string): readonly string[] {
  const names = publicNames(later);
  return [...publicNames(earlier)].filter((name) => !names.has(name));
}
