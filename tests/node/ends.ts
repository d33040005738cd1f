/**
 * Loaded into each test process (.ci/node). A failed test may have left a server or a
 * child open, which would keep its process, and with it the whole run, alive for ever.
 * Such a process fails some time after its last test, and prints what was open.
 */
import { after } from "node:test";

const SECONDS = 60;

function end(): void {
    const open = process.getActiveResourcesInfo().join(", ");
    console.error(`${process.argv[1]}: it is ended ${SECONDS} s after its last test`);
    console.error(`left open: ${open}`);
    process.exit(1);
}

// Only in processes of tests, not in the one that starts them.
if (process.env.NODE_TEST_CONTEXT)
    after(() => void setTimeout(end, SECONDS * 1000).unref());
