/**
 * The timers and the clock of this package, as they were when the package was loaded. A
 * test may replace those of the program (vi.useFakeTimers). The package must not wait for
 * timers that never run.
 *
 * @module
 */

export const { setImmediate, setTimeout, clearTimeout, performance } = globalThis;
