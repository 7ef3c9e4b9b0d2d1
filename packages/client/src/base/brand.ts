type AnyClass = abstract new (...args: never[]) => object;

const ordinary = Function.prototype[Symbol.hasInstance];

/**
 * Makes `instanceof` recognise a class's objects from every loaded copy of its package, by a registered symbol on the
 * class's prototype. Errors get their `name` with it: the part of the name here behind its last dot.
 *
 * Two copies are in one process where a bundle holds one and a Lambda layer the other, or where two versions are
 * installed. Objects of a subclass are recognised as those of the class. A subclass that is not branded itself keeps
 * the ordinary `instanceof`. A copy of an object's fields, such as an error's JSON, is no object of the class.
 *
 * The name stands for the class's interface: an incompatible class needs another name. Call it from a static block, so
 * that no object can be older.
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
  const { prototype } = type;
  Object.defineProperty(prototype, brand, { value: true });
  if (prototype instanceof Error) {
    // Written out: a bundler that shortens names shortens those of classes too, and Step Functions matches on it.
    const value = name.replace(/.*\./, "");
    Object.defineProperty(prototype, "name", { value, writable: true, configurable: true });
  }
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      // Subclasses inherit this function.
      if (this !== type) return ordinary.call(this as AnyClass, value);
      return isBranded(value, name);
    },
  });
}

/** Whether a value is an object of the class that was branded with this name, in any copy. */
export function isBranded(value: unknown, name: string): boolean {
  return Symbol.for(`leasehold:${name}`) in Object(Object.getPrototypeOf(Object(value)));
}
