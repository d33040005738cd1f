/** The symbol of `await using`, which Node 20 has only in its later versions. */

const symbols = Symbol as { asyncDispose?: symbol };
if (symbols.asyncDispose === undefined) {
    // What compilers and other libraries put there when it is missing.
    Object.defineProperty(Symbol, "asyncDispose", {
        value: Symbol.for("Symbol.asyncDispose"),
    });
}

/** `Symbol.asyncDispose`, in each version of Node. */
export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose;
