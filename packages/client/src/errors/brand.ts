type AnyClass = abstract new (...args: never[]) => object;

const ordinary = Function.prototype[Symbol.hasInstance];

/**
 * Makes `instanceof` recognise a class's objects from every copy of its package that is loaded, by a registered symbol on
 * the class's prototype.
 *
 * Two copies are in one process where a bundle holds one and a Lambda layer the other, or where two versions are
 * installed. Objects of a subclass are recognised as those of the class. A subclass that is not branded itself keeps
 * the ordinary `instanceof`. A copy of an object's fields, such as an error's JSON, is no object of the class.
 *
 * The name stands for what the class's objects can do and say: a class that breaks with it needs another name. Call it
 * from a static block, so that no object can be older.
 *
 * ```ts
 * class ShopClosedError extends Error {
 *   static {
 *     brandClass(ShopClosedError, "shop.ShopClosedError");
 *   }
 * }
 * ```
 */
export function brandClass(type: AnyClass, name: string): void {
  const brand = Symbol.for(`leasehold:${name}`);
  Object.defineProperty(type.prototype, brand, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      // Subclasses inherit this function.
      if (this !== type) return ordinary.call(this as AnyClass, value);
      if (typeof value !== "object" || value === null) return false;
      const prototype: object | null = Object.getPrototypeOf(value);
      return prototype !== null && brand in prototype;
    },
  });
}
