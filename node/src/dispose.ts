/**
 * Provides `Symbol.asyncDispose`, the symbol of `await using`. Older versions of Node 20
 * do not have this symbol.
 */

const symbols = Symbol as { asyncDispose?: symbol };
if (symbols.asyncDispose === undefined) {
    // Where `Symbol.asyncDispose` is missing, compilers and other libraries use
    // Symbol.for("Symbol.asyncDispose"). This module must use the same symbol.
    Object.defineProperty(Symbol, "asyncDispose", {
        value: Symbol.for("Symbol.asyncDispose"),
    });
}

/** `Symbol.asyncDispose`, in every version of Node. */
export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose;
