import { UnsupportedResourceError } from "./errors.ts";
import type { Json, JsonObject } from "./types.ts";

/** Reads a resource's resolved properties, and says which resource and property is wrong. */
export class Properties {
  readonly label: string;
  readonly #values: JsonObject;
  readonly #prefix: string;

  constructor(label: string, values: JsonObject, prefix = "") {
    this.label = label;
    this.#values = values;
    this.#prefix = prefix;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  raw(name: string): Json | undefined {
    return this.#values[name];
  }

  text(name: string): string {
    const value = this.optionalText(name);
    return value ?? this.#refuse(name, "is missing");
  }

  optionalText(name: string): string | undefined {
    const value = this.#values[name];
    if (value === undefined || typeof value === "string") return value;
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    return this.#refuse(name, "must be a string");
  }

  /** CloudFormation takes numbers as text, too. */
  optionalNumber(name: string): number | undefined {
    const value = this.#values[name];
    if (value === undefined) return undefined;
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    return typeof number === "number" && Number.isFinite(number)
      ? number
      : this.#refuse(name, "must be a number");
  }

  flag(name: string, fallback: boolean): boolean {
    const value = this.#values[name];
    if (value === undefined) return fallback;
    if (value === true || value === "true") return true;
    if (value === false || value === "false") return false;
    return this.#refuse(name, "must be true or false");
  }

  /** A nested object; empty where there is none. */
  object(name: string): Properties {
    const value = this.#values[name] ?? {};
    if (!isObject(value)) return this.#refuse(name, "must be an object");
    return new Properties(this.label, value, `${this.#prefix}${name}.`);
  }

  /** A list of nested objects; empty where there is none. */
  objects(name: string): Properties[] {
    return this.list(name).map((value, index) => {
      if (!isObject(value)) return this.#refuse(name, "must be a list of objects");
      return new Properties(this.label, value, `${this.#prefix}${name}[${index}].`);
    });
  }

  list(name: string): readonly Json[] {
    const value = this.#values[name];
    if (value === undefined) return [];
    return Array.isArray(value) ? (value as readonly Json[]) : this.#refuse(name, "must be a list");
  }

  /** The ARN of the queue that takes what failed. */
  onFailureQueue(): string | undefined {
    const arn = this.object("DestinationConfig").object("OnFailure").optionalText("Destination");
    if (arn === undefined || arn.includes(":sqs:")) return arn;
    return this.unsupported(`what failed can go to a queue here, not to ${arn}`);
  }

  /** Says what cannot be done here. */
  unsupported(problem: string): never {
    throw new UnsupportedResourceError(this.label, problem);
  }

  #refuse(name: string, problem: string): never {
    throw new UnsupportedResourceError(this.label, `${this.#prefix}${name} ${problem}`);
  }
}

function isObject(value: Json): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
