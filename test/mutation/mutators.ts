/** What StrykerJS does not do by itself: mutants of data, and no mutants of texts that only people read. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { babel } from "@stryker-mutator/instrumenter";
import { root } from "./scope.ts";

type NodePath = babel.NodePath;
type Node = NodePath["node"];

interface Mutator {
  readonly name: string;
  mutate(path: NodePath): Iterable<Node>;
}

/** A test of an attribute is a list that holds its comparison as text: to leave out a part of it makes no sense. */
const isTest = (elements: readonly (Node | null)[]): boolean =>
  elements.some((element) => element?.type === "StringLiteral");

/** Leaves out each element of a list: one condition, one attribute to remove. */
const droppedElement: Mutator = {
  name: "DroppedElement",
  *mutate({ node }) {
    if (node.type !== "ArrayExpression" || node.elements.length < 2 || isTest(node.elements)) return;
    for (const left of node.elements) {
      yield { ...node, elements: node.elements.filter((element) => element !== left) };
    }
  },
};

/** Leaves out each attribute that an object sets: `[attribute]: value`, and what it takes over from another object. */
const droppedAssignment: Mutator = {
  name: "DroppedAssignment",
  *mutate({ node }) {
    if (node.type !== "ObjectExpression" || node.properties.length < 2) return;
    for (const left of node.properties) {
      const isAttribute = left.type === "SpreadElement" || (left.type === "ObjectProperty" && left.computed);
      if (!isAttribute) continue;
      yield { ...node, properties: node.properties.filter((property) => property !== left) };
    }
  },
};

type Clause = "set" | "remove" | "when";

/** Which clause of a statement an expression is: `{ when: "#token = :ifToken" }`. */
function clauseOf({ parentPath }: NodePath): Clause | undefined {
  if (!parentPath?.isObjectProperty() || parentPath.node.key.type !== "Identifier") return undefined;
  const { name } = parentPath.node.key;
  return name === "set" || name === "remove" || name === "when" ? name : undefined;
}

/** A text, whole or in pieces, with the number of each expression in it; undefined for what is no text. */
function textOf(node: Node, expressions: Node[]): string | undefined {
  if (node.type === "StringLiteral") return node.value;
  if (node.type === "BinaryExpression" && node.operator === "+") {
    const [left, right] = [textOf(node.left, expressions), textOf(node.right, expressions)];
    return left === undefined || right === undefined ? undefined : left + right;
  }
  if (node.type !== "TemplateLiteral") return undefined;
  return node.quasis.reduce((text, { value }, index) => {
    if (index === 0) return value.raw;
    expressions.push(node.expressions[index - 1] as Node);
    return `${text}\0${expressions.length - 1}\0${value.raw}`;
  }, "");
}

/** The other way round. */
function nodeOf(text: string, expressions: readonly Node[]): Node {
  const [first = "", ...pieces] = text.split("\0");
  const raws = [first, ...pieces.filter((_, index) => index % 2 === 1)];
  const numbers = pieces.filter((_, index) => index % 2 === 0).map(Number);
  if (numbers.length === 0) return { type: "StringLiteral", value: first } as Node;
  const quasis = raws.map((raw, index) => ({
    type: "TemplateElement",
    value: { raw, cooked: raw },
    tail: index === raws.length - 1,
  }));
  return {
    type: "TemplateLiteral",
    quasis,
    expressions: numbers.map((number) => expressions[number]),
  } as unknown as Node;
}

/** What lists are joined by. A comma within parentheses is a function's. */
const joints = { set: [/, (?![^()]*\))/], remove: [/, /], when: [/ AND /, / OR /] } as const;

/** What can be mistaken for each other. An assignment is no comparison. */
const opposites = {
  set: [[") + ", ") - "]],
  remove: [],
  when: [
    [" = ", " <> "],
    [" < ", " <= "],
    [" >= ", " > "],
    [" AND ", " OR "],
    ["attribute_exists", "attribute_not_exists"],
  ],
} as const;

/**
 * The mistakes that a clause can have: each of what it sets, removes and insists on is left out once, and each word that has
 * an opposite is turned into it.
 */
export function* mistakenClauses(clause: Clause, text: string): Iterable<string> {
  for (const joint of joints[clause]) {
    const [by = ""] = joint.exec(text) ?? [];
    const pieces = text.split(joint);
    if (pieces.length < 2) continue;
    for (const [left, piece] of pieces.entries()) {
      if (!isBalanced(piece)) continue;
      yield pieces.filter((_, index) => index !== left).join(by);
    }
    // Within parentheses: an operand of OR, which has one of them.
    for (const [whole = "", open = "", operands = "", close = ""] of text.matchAll(
      /(^|[( ])\(([^()]*(?:\([^()]*\)[^()]*)*)(\))/g,
    )) {
      const inner = operands.split(joint);
      if (inner.length < 2) continue;
      for (const left of inner.keys()) {
        const rest = inner.filter((_, index) => index !== left).join(by);
        yield text.replace(whole, `${open}(${rest}${close}`);
      }
    }
  }
  for (const pair of opposites[clause]) {
    for (const [word, other] of [pair, [...pair].reverse()] as const) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        yield text.slice(0, at) + other + text.slice(at + word.length);
      }
    }
  }
}

function isBalanced(text: string): boolean {
  return text.split("(").length === text.split(")").length;
}

/** Plants each mistake that a clause of a statement can have. */
const mistakenClause: Mutator = {
  name: "MistakenClause",
  *mutate(path) {
    const clause = clauseOf(path);
    if (clause === undefined) return;
    const expressions: Node[] = [];
    const text = textOf(path.node, expressions);
    if (text === undefined) return;
    for (const mistaken of mistakenClauses(clause, text)) yield nodeOf(mistaken, expressions);
  },
};

/** Adds ours to StrykerJS's, whose list is open but not exported. */
export async function dropMutators(): Promise<void> {
  const path = join(
    root,
    "test/mutation/node_modules/@stryker-mutator/instrumenter/dist/src/mutators/mutate.js",
  );
  const { allMutators } = (await import(pathToFileURL(path).href)) as { allMutators: Mutator[] };
  for (const own of [droppedElement, droppedAssignment, mistakenClause])
    if (!allMutators.includes(own)) allMutators.push(own);
}

/** A text with a space in it is for people, unless DynamoDB reads it. */
const forDynamoDb = /^(attribute_|begins_with|SET |REMOVE |\W|if_not_exists| (AND|OR) )/;

export const textsForPeople = {
  shouldIgnore(path: object): string | undefined {
    const { node } = path as NodePath;
    if (node.type === "NewExpression" && "name" in node.callee && /Error$/.test(String(node.callee.name)))
      return "what an error says";
    const text =
      node.type === "StringLiteral"
        ? node.value
        : node.type === "TemplateLiteral"
          ? node.quasis.map((quasi) => quasi.value.raw).join("")
          : "";
    return text.includes(" ") && !forDynamoDb.test(text) ? "a text for people" : undefined;
  },
};
