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

/** Adds ours to StrykerJS's, whose list is open but not exported. */
export async function dropMutators(): Promise<void> {
  const path = join(root, "node_modules/@stryker-mutator/instrumenter/dist/src/mutators/mutate.js");
  const { allMutators } = (await import(pathToFileURL(path).href)) as { allMutators: Mutator[] };
  for (const own of [droppedElement, droppedAssignment])
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
