/** A cloud assembly cannot be read, or asks for what is not done on this machine; the message says where. */
export class AssemblyError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AssemblyError";
  }
}

/** Reads a part of an assembly; what is wrong in it is told with its place. */
export function inPlace<Part>(where: string, read: () => Part): Part {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AssemblyError)) throw error;
    throw new AssemblyError(`${where}: ${error.message}`);
  }
}
