/** The mutants that no test can see, or should, and why. Each is named as `npm run mutation` names it. */

export interface Explained {
  readonly why: string;
  /** Their keys: the file, the line, what is replaced, and by what. */
  readonly mutants: readonly string[];
}

export const explained: readonly Explained[] = [
  {
    why: "The compiler asks for it, and it is always so: a match of an expression with one group has that group.",
    mutants: [
      "packages/client/src/expressions.ts: if (name !== undefined) names[placeholder] = name;: name !== undefined ⇒ true",
    ],
  },
];
