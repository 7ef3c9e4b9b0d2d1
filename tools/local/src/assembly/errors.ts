// The errors of an assembly that cannot be read or run here.

/** The stable codes of what can be wrong with a cloud assembly. */
export type AssemblyErrorCode =
  | "ASSEMBLY_NOT_FOUND"
  | "ASSEMBLY_INVALID"
  | "INTRINSIC_UNSUPPORTED"
  | "RESOURCE_UNSUPPORTED";

/** A cloud assembly cannot be read or cannot be run here; the message says where. */
export class AssemblyError extends Error {
  readonly code: AssemblyErrorCode;

  constructor(code: AssemblyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The template uses an intrinsic function, a reference or an attribute that has no value on this machine. */
export class UnsupportedIntrinsicError extends AssemblyError {
  /** Where it stands, such as `Orders.Environment`. */
  readonly where: string;

  constructor(where: string, problem: string) {
    super("INTRINSIC_UNSUPPORTED", `${where}: ${problem}`);
    this.where = where;
  }
}

/** A resource does something that is not done on this machine; running the app without it would be misleading. */
export class UnsupportedResourceError extends AssemblyError {
  /** The resource, as `<stack>/<logical id>`. */
  readonly resource: string;

  constructor(resource: string, problem: string) {
    super("RESOURCE_UNSUPPORTED", `${resource}: ${problem}`);
    this.resource = resource;
  }
}
