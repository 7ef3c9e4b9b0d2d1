/** A class of errors. */
type ErrorClass = abstract new (...args: never[]) => Error;

const ordinary = Function.prototype[Symbol.hasInstance];

/**
 * Makes `instanceof` recognise a class's errors from every copy of its package that is loaded, by a registered symbol on
 * the class's prototype.
 *
 * Two copies are in one process where a bundle holds one and a Lambda layer the other, or where two versions are
 * installed. Instances of a subclass are recognised as those of the class. A subclass without a name of its own keeps
 * the ordinary `instanceof`. A copy of an error's fields, such as its JSON, is no error of the class.
 *
 * The name stands for the meaning of the class's fields, so that a class whose fields mean something else needs another
 * name. Call it from a static block, so that no instance can be older.
 *
 * ```ts
 * class ShopClosedError extends Error {
 *   static {
 *     brandErrorClass(ShopClosedError, "shop.ShopClosedError");
 *   }
 * }
 * ```
 */
export function brandErrorClass(type: ErrorClass, name: string): void {
  const brand = Symbol.for(`leasehold.error:${name}`);
  Object.defineProperty(type.prototype, brand, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      // Subclasses inherit this function.
      if (this !== type) return ordinary.call(this as ErrorClass, value);
      if (typeof value !== "object" || value === null) return false;
      const prototype: object | null = Object.getPrototypeOf(value);
      return prototype !== null && brand in prototype;
    },
  });
}
