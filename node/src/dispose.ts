/** The symbol of `await using`. Older versions of Node 20 do not have it. */

const symbols = Symbol as { asyncDispose?: symbol };
if (symbols.asyncDispose === undefined) {
    // Compilers and other libraries use Symbol.for("Symbol.asyncDispose") when the symbol
    // is missing, so this module must use the same symbol.
    Object.defineProperty(Symbol, "asyncDispose", {
        value: Symbol.for("Symbol.asyncDispose"),
    });
}

/** `Symbol.asyncDispose`, in every version of Node. */
export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose;
