import { handler as mcp } from "../../server.js";

export const dynamic = "force-dynamic"; // nothing of it is made at build time

export const GET = mcp.fetch;
export const POST = mcp.fetch;
export const DELETE = mcp.fetch;
