// The errors of an assembly that cannot be read or run here.

/** A cloud assembly cannot be read or cannot be run here; the message says where. */
export class AssemblyError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The template uses an intrinsic function, a reference or an attribute that has no value on this machine. */
export class UnsupportedIntrinsicError extends AssemblyError {
  /** @param where The place of the value, such as `Orders.Environment`. */
  constructor(where: string, problem: string) {
    super(`${where}: ${problem}`);
  }
}

/** A resource does something that is not done on this machine; running the app without it would be misleading. */
export class UnsupportedResourceError extends AssemblyError {
  /** @param resource The resource, as `<stack>/<logical id>`. */
  constructor(resource: string, problem: string) {
    super(`${resource}: ${problem}`);
  }
}
