import {
  jsonSchemaOf,
  type RecordKind,
  recordKinds,
  schemaName,
} from "../../packages/cli/src/terminal/record-kinds.ts";

/** The part of JSON Schema that the command line uses. */
interface Schema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema;
}

const schemas = new Map(
  (Object.keys(recordKinds) as RecordKind[]).map((kind) => [schemaName(kind), jsonSchemaOf(kind) as Schema]),
);

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

/** What is wrong with a value, by the part of JSON Schema that the command line uses. A field that no schema names is wrong. */
function* wrongIn(value: unknown, schema: Schema, path: string): Generator<string> {
  const type = typeOf(value);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.includes(type) && !(type === "integer" && types.includes("number"))) {
    yield `${path} is ${type}, and not ${types}`;
  }
  if (schema.const !== undefined && value !== schema.const) yield `${path} is not ${schema.const}`;
  if (type === "array" && schema.items !== undefined) {
    for (const [index, one] of (value as unknown[]).entries())
      yield* wrongIn(one, schema.items, `${path}[${index}]`);
  }
  if (type !== "object") return;
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name of schema.required ?? []) if (!(name in fields)) yield `${path}.${name} is missing`;
  if (schema.properties === undefined && schema.additionalProperties === undefined) return;
  for (const [name, field] of Object.entries(fields)) {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    if (known === undefined) yield `${path}.${name} is in no schema`;
    else yield* wrongIn(field, known, `${path}.${name}`);
  }
}

/** What is wrong with the records that a call has printed, by the schemas that they name. */
export function wrongRecords(stdout: string, format: "json" | "ndjson"): readonly string[] {
  if (stdout.trim() === "") return [];
  const documents: readonly unknown[] =
    format === "json"
      ? [JSON.parse(stdout)].flat()
      : stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line));
  return documents.flatMap((record, index) => {
    // Codes of errors are a list of texts.
    if (typeof record === "string") return [];
    const name = String(Object(record).schema);
    const schema = schemas.get(name);
    return schema === undefined
      ? [`record ${index} is of the kind ${name}, which is unknown`]
      : [...wrongIn(record, schema, name)];
  });
}
