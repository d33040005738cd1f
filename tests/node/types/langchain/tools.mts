// The adapter of LangChain in an ES module: the framework has other types there than in
// CommonJS. The declarations of the framework itself do not pass all checks.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { connect } from "segue-mcp";
import { tools } from "segue-mcp/adapters/langchain";

await using session = await connect("http://127.0.0.1:1/mcp");
const made: StructuredToolInterface[] = await tools(session);
console.log(made.map(({ name }) => name));
