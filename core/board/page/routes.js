// What the hash of the page names, so that each view has a link: "#/?status=working",
// "#/task/ID" and "#/task/ID/at/ENTRY".

import { api } from "./api.js";

const FILTERS = ["status", "tool", "by", "age", "q"];

export function routeOf(hash) {
    const [path, query = ""] = hash.replace(/^#/, "").split("?");
    const parameters = new URLSearchParams(query);
    const parts = path.split("/").slice(1).map(decodeURIComponent);
    const route = { source: Number(parameters.get("source") ?? 0), filter: {} };
    for (const name of FILTERS) route.filter[name] = parameters.get(name) ?? "";
    if (parts[0] === "task" && parts[1]) route.task = parts[1];
    if (route.task && parts[2] === "at") route.at = Number(parts[3]);
    return route;
}

export function hashOf({ task, at, filter = {} }) {
    const parameters = new URLSearchParams();
    for (const name of FILTERS) if (filter[name]) parameters.set(name, filter[name]);
    if (api.source) parameters.set("source", api.source);
    const path = task ? `/task/${encodeURIComponent(task)}${at ? `/at/${at}` : ""}` : "/";
    const query = parameters.toString();
    return `#${path}${query ? `?${query}` : ""}`;
}
