/**
 * Joins the JSON Schemas of members to the schema of one object.
 *
 * A library makes the schema of each member as a schema of its own: its definitions are
 * in its `$defs`, and its references begin with `#`. Inside the schema of the object both
 * have other places. So the definitions move to the `$defs` of the object, and the
 * references follow them.
 *
 * @module
 */

import type { JsonSchema } from "./schema.js";

/** Keywords whose value is a schema, a list of schemas, or an object of schemas. */
const OF_SCHEMAS = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "prefixItems",
] as const;
const OF_NAMED_SCHEMAS = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
] as const;
/** Keywords that hold the definitions of a schema. */
const OF_PARTS = ["$defs", "definitions"] as const;

type Move = (place: string) => string;

/** Returns a copy of a schema in which `move` has changed each reference that begins
 * with `#`. */
function moved(schema: unknown, move: Move): unknown {
    if (Array.isArray(schema)) return schema.map((one) => moved(one, move));
    if (typeof schema !== "object" || schema === null) return schema;
    const made: Record<string, unknown> = { ...schema };
    for (const keyword of OF_SCHEMAS)
        if (keyword in made) made[keyword] = moved(made[keyword], move);
    for (const keyword of OF_NAMED_SCHEMAS) {
        const named = made[keyword];
        if (typeof named === "object" && named !== null)
            made[keyword] = mapped(named, (one) => moved(one, move));
    }
    const place = made.$ref;
    if (typeof place === "string" && place.startsWith("#")) made.$ref = move(place);
    return made;
}

function mapped(
    named: object,
    change: (one: unknown, name: string) => unknown,
): Record<string, unknown> {
    return Object.fromEntries(
        Object.entries(named).map(([name, one]) => [name, change(one, name)]),
    );
}

/** Returns the reference to a definition of the object. */
function placeOf(name: string): string {
    const step = name.replaceAll("~", "~0").replaceAll("/", "~1");
    return `#/$defs/${encodeURIComponent(step)}`;
}

/** The definitions of the object, while its members are joined. */
class Parts {
    readonly all = new Map<string, unknown>();

    /** Moves the definitions of a member here. Returns the rest of its schema. */
    take(member: string, json: JsonSchema): JsonSchema {
        const names = this.#namesOf(member, json);
        let whole: string | undefined;
        const rest = moved(json, (place) => {
            if (place !== "#" && !place.startsWith("#/")) return place; // an anchor
            const [, keyword = "", step = ""] = place.split("/");
            const name = names.get(`${keyword}/${decoded(step)}`);
            if (name !== undefined)
                return placeOf(name) + place.slice(`#/${keyword}/${step}`.length);
            // The reference leads to the schema of the member itself.
            whole ??= this.#newName(member, [...names.values()]);
            return placeOf(whole) + place.slice(1);
        }) as Record<string, unknown>;
        for (const [keyword, name, part] of partsOf(rest))
            this.all.set(names.get(`${keyword}/${name}`) as string, part);
        for (const keyword of OF_PARTS) delete rest[keyword];
        if (whole === undefined) return rest;
        this.all.set(whole, rest);
        return { $ref: placeOf(whole) };
    }

    /**
     * Returns the new names of a member's definitions. Members share definitions that are
     * equal. If one of them differs from another member's definition with the same name,
     * all get new names, because a definition may refer to another one.
     */
    #namesOf(member: string, json: JsonSchema): Map<string, string> {
        const parts = [...partsOf(json)];
        const own = new Set(parts.map(([, name]) => name));
        const isShared =
            own.size === parts.length &&
            parts.every(([, name, part]) => {
                const had = this.all.get(name);
                return had === undefined || JSON.stringify(had) === JSON.stringify(part);
            });
        const names = new Map<string, string>();
        for (const [keyword, name] of parts) {
            const made = isShared
                ? name
                : this.#newName(`${member}.${name}`, [...names.values()]);
            names.set(`${keyword}/${name}`, made);
        }
        return names;
    }

    #newName(wanted: string, taken: readonly string[]): string {
        let name = wanted;
        for (let at = 2; this.all.has(name) || taken.includes(name); at++)
            name = `${wanted}.${at}`;
        return name;
    }
}

/** Returns the definitions of a schema, each with its keyword and its name. */
function* partsOf(json: JsonSchema): Generator<[string, string, unknown]> {
    for (const keyword of OF_PARTS)
        for (const [name, part] of Object.entries(json[keyword] ?? {}))
            yield [keyword, name, part];
}

function decoded(step: string): string {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
}

/**
 * Joins the schemas of members.
 *
 * @returns the schemas as `properties`, and their definitions as `$defs` if there are
 * any.
 */
export function joinMembers(
    members: readonly (readonly [name: string, json: JsonSchema])[],
): JsonSchema {
    const parts = new Parts();
    const properties = Object.fromEntries(
        members.map(([name, json]) => [name, parts.take(name, json)]),
    );
    if (!parts.all.size) return { properties };
    return { properties, $defs: Object.fromEntries(parts.all) };
}
