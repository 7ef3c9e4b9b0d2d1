declare module "asl-validator" {
  /** Checks a definition in Amazon States Language; changes the object that it is given. */
  export default function validator(definition: unknown): {
    readonly errors: readonly {
      readonly "Error code": string;
      readonly Message: string;
    }[];
  };
}
