/* resources/read, prompts/get and completion/complete: plain calls of a handler. These
 * calls are operations like the calls of tools/call (tool_call.c), but they are never
 * tasks and have no idempotency key. A client that has lost the answer sends the request
 * again. */
#include "engine/server/call.h"
#include "engine/server/clients.h"
#include "engine/server/carried_answers.h"
#include "engine/server/grant.h"
#include "engine/server/metrics.h"
#include "engine/server/pieces.h"
#include "engine/server/sight.h"
#include "engine/server/tool_call.h"

/* ---- errors ---- */

static void refuse(const sgi_inbound *in, const char *why)
{
    sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, why, NULL);
}

/* ---- reading the parameters ---- */

/* Decodes a name or URI into `room`. Returns false when the request is refused; the error
 * has then been sent. */
static bool read_name(const sgi_inbound *in, sgi_json value, const char *what,
                      sgi_buf *room)
{
    bool ok = sgi_json_decode(value, room);
    if (room->failed)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    else if (!ok || !room->len || room->len > SGI_URI_MAX ||
             memchr(room->p, 0, room->len))
        refuse(in, what);
    else
        return true;
    return false;
}

/* ---- the call ---- */

static void run(const sgi_inbound *in, sgi_call_request *request, char *own_arguments)
{
    sgi_reply *reply = sgi_reply_open_call(in);
    sgi_call_request_read_pieces(in, request);
    if (!reply) {
        sgi_text_free(sgi_engine_mem(in->peer->server->engine), own_arguments);
        return;
    }
    sgi_op *op = sgi_item_call_op_new(in, request, own_arguments);
    if (!op || !sgi_carried_answers_read(op, in) ||
        sgi_call_start(op, false) != SEGUE_OK) {
        sgi_tool_call_fail_no_memory(reply, op);
    } else {
        sgi_pieces_new_if_negotiated(reply, request);
        sgi_pieces_begin(reply, op, false);
        sgi_reply_wait_for_op(reply, op);
    }
    if (op)
        sgi_op_unref(op);
}

/* ---- resources/read ---- */

/* Returns the decoded values of a template's variables as a JSON object. On failure
 * returns NULL and sets *is_none: true = a value cannot be decoded, false = out of
 * memory. */
static char *write_values(const sgi_inbound *in, const sgi_uri_template *t,
                          const sgi_str *values, bool *is_none)
{
    const sgi_mem *mem = sgi_engine_mem(in->peer->server->engine);
    sgi_buf text, value;
    bool ok = true;
    sgi_buf_init(&text, mem);
    sgi_buf_init(&value, mem);
    sgi_jw w = sgi_jw_to(&text);
    sgi_jw_open(&w, '{');
    for (size_t i = 0; ok && i < t->count; i++) {
        sgi_buf_reset(&value, SGI_URI_MAX);
        ok = sgi_uri_decode(values[i], &value) &&
             sgi_utf8_valid(sgi_buf_str(&value), NULL);
        text.failed |= value.failed;
        sgi_jw_key_str(&w, t->parts[i].name);
        if (ok)
            sgi_jw_string(&w, sgi_buf_str(&value));
    }
    sgi_jw_close(&w, '}');
    *is_none = !ok && !text.failed;
    char *copy = ok && !text.failed ? sgi_text_dup(mem, sgi_buf_str(&text)) : NULL;
    sgi_buf_free(&value);
    sgi_buf_free(&text);
    return copy;
}

/* Finds the first template that matches the URI and sets the values of its variables. A
 * template that is only listed has no pattern, and matches nothing.
 * Returns SEGUE_E_NOT_FOUND when no template matches. */
static segue_status find_template(const sgi_inbound *in, sgi_str uri, sgi_item **found,
                                  char **values)
{
    segue_server *server = in->peer->server;
    sgi_typed_items *list = sgi_items_of_type(server, SEGUE_ITEM_RESOURCE_TEMPLATE);
    sgi_str spans[SGI_URI_VARIABLES_MAX];
    bool is_none = true;
    TAILQ_FOREACH(*found, &list->items, link) {
        const sgi_uri_template *pattern = (*found)->pattern;
        if (!pattern || !sgi_uri_template_match(pattern, uri, spans))
            continue;
        *values = write_values(in, pattern, spans, &is_none);
        if (*values || !is_none)
            return *values ? SEGUE_OK : SEGUE_E_NOMEM;
    }
    return SEGUE_E_NOT_FOUND;
}

static void refuse_unknown_resource(const sgi_inbound *in, sgi_str uri)
{
    sgi_metrics_count_unknown(in, SEGUE_ITEM_RESOURCE);
    sgi_refuse_unknown_name(in, sgi_facts(in->version)->not_found_code,
                            "Resource not found", "uri", uri);
}

/* Reads a resource that exists. The function becomes the owner of the arguments. */
static void read_found(const sgi_inbound *in, sgi_call_request *request, char *arguments)
{
    sgi_sight sight = sgi_item_sight(in, request->tool, sgi_resources_read);
    if (sight == SGI_SHOWN && sgi_inbound_may_use_item(in, request->tool)) {
        run(in, request, arguments);
        return;
    }
    sgi_text_free(sgi_engine_mem(in->peer->server->engine), arguments);
    if (sight == SGI_HIDDEN)
        refuse_unknown_resource(in, request->name);
}

static void read_resource(const sgi_inbound *in, sgi_str uri)
{
    sgi_call_request request = {
        .kind = &sgi_call_resource, .name = uri, .caps = in->caps};
    const sgi_mem *mem = sgi_engine_mem(in->peer->server->engine);
    char *arguments = NULL;
    segue_status status = SEGUE_OK;
    if (sgi_rejoin_round(in, &request))
        return;
    request.tool = sgi_item_find(in->peer->server, SEGUE_ITEM_RESOURCE, uri);
    if (!request.tool)
        status = find_template(in, uri, &request.tool, &arguments);
    else if (!(arguments = sgi_text_dup(mem, SGI_STR("{}"))))
        status = SEGUE_E_NOMEM;
    if (status == SEGUE_OK)
        read_found(in, &request, arguments);
    else if (status == SEGUE_E_NOT_FOUND)
        refuse_unknown_resource(in, uri);
    else
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
}

void sgi_resources_read(const sgi_inbound *in)
{
    sgi_buf uri;
    sgi_buf_init(&uri, sgi_engine_mem(in->peer->server->engine));
    if (read_name(in, sgi_json_get(in->params, "uri"),
                  "params.uri is not a URI of at most 8192 bytes", &uri))
        read_resource(in, sgi_buf_str(&uri));
    sgi_buf_free(&uri);
}

/* ---- prompts/get ---- */

static bool are_texts(sgi_json object)
{
    sgi_json_member member;
    if (object.n && sgi_json_kind_of(object) != SGI_JSON_OBJECT)
        return false;
    for (size_t at = 0; object.n && sgi_json_next_member(object, &at, &member);)
        if (sgi_json_kind_of(member.value) != SGI_JSON_STRING)
            return false;
    return true;
}

/* True when the object has a member of this name. name: the member's name as a JSON
 * string. */
static bool has_member(sgi_json object, sgi_json name, sgi_buf *room)
{
    sgi_json_member member;
    sgi_buf_reset(room, SGI_URI_MAX);
    sgi_json_decode(name, room);
    for (size_t at = 0; object.n && sgi_json_next_member(object, &at, &member);)
        if (sgi_json_string_is((sgi_json){member.key.p - 1, member.key.n + 2},
                               sgi_buf_str(room)))
            return !room->failed;
    return false;
}

/* True when all required arguments of the prompt are given. On false, *room contains the
 * name of a missing argument. */
static bool has_required(sgi_json prompt, sgi_json given, sgi_buf *room)
{
    sgi_json arguments = sgi_json_get(prompt, "arguments");
    sgi_json argument;
    for (size_t at = 0; arguments.n && sgi_json_next_item(arguments, &at, &argument);)
        if (sgi_json_kind_of(sgi_json_get(argument, "required")) == SGI_JSON_TRUE &&
            !has_member(given, sgi_json_get(argument, "name"), room))
            return false;
    return true;
}

static void refuse_unknown_prompt(const sgi_inbound *in, sgi_str name)
{
    sgi_metrics_count_unknown(in, SEGUE_ITEM_PROMPT);
    sgi_refuse_unknown_name(in, SGI_RPC_INVALID_PARAMS, "Unknown prompt", "name", name);
}

static void get_prompt(const sgi_inbound *in, sgi_str name, sgi_buf *room)
{
    sgi_call_request request = {.kind = &sgi_call_prompt, .name = name, .caps = in->caps};
    if (sgi_rejoin_round(in, &request))
        return;
    request.tool = sgi_item_find(in->peer->server, SEGUE_ITEM_PROMPT, name);
    sgi_sight sight = sgi_item_sight(in, request.tool, sgi_prompts_get);
    if (sight == SGI_SIGHT_LATER)
        return;
    if (sight == SGI_HIDDEN)
        refuse_unknown_prompt(in, name);
    else if (!sgi_inbound_may_use_item(in, request.tool))
        return;
    else if (!are_texts(in->arguments))
        refuse(in, "params.arguments is not an object of strings");
    else if (has_required((sgi_json){request.tool->json, request.tool->json_len},
                          in->arguments, room))
        run(in, &request, NULL);
    else if (room->failed)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    else
        sgi_refuse_unknown_name(in, SGI_RPC_INVALID_PARAMS,
                                "A required argument is missing", "argument",
                                sgi_buf_str(room));
}

void sgi_prompts_get(const sgi_inbound *in)
{
    const sgi_mem *mem = sgi_engine_mem(in->peer->server->engine);
    sgi_buf name, room;
    sgi_buf_init(&name, mem);
    sgi_buf_init(&room, mem);
    if (read_name(in, in->name,
                  "params.name is missing or is not a string that can name a prompt",
                  &name))
        get_prompt(in, sgi_buf_str(&name), &room);
    sgi_buf_free(&room);
    sgi_buf_free(&name);
}

/* ---- completion/complete ---- */

static bool is_completable(const sgi_inbound *in, sgi_json argument, sgi_json context)
{
    return sgi_json_kind_of(argument) == SGI_JSON_OBJECT &&
           sgi_json_kind_of(sgi_json_get(argument, "name")) == SGI_JSON_STRING &&
           sgi_json_kind_of(sgi_json_get(argument, "value")) == SGI_JSON_STRING &&
           (!context.n || sgi_json_kind_of(context) == SGI_JSON_OBJECT) &&
           are_texts(sgi_json_get(context, "arguments")) && in->params.n;
}

static void answer_nothing(const sgi_inbound *in)
{
    sgi_sending sending;
    sgi_answer_begin_result(&sending, in, "complete");
    sgi_jw_member_raw(&sending.w, sgi_call_completion.standard.name,
                      sgi_str_of(sgi_call_completion.standard.json));
    if (sgi_facts(in->version)->has_result_types)
        sgi_write_server_info_meta(&sending, in->peer->server);
    sgi_send_end(&sending);
}

/* Starts a completion. The arguments of the handler are the members "name" and "value" of
 * the argument to complete; the handler finds all other members in the params. A resource
 * without variables has no values to complete. */
static void complete(const sgi_inbound *in, bool is_prompt, sgi_str name)
{
    segue_server *server = in->peer->server;
    sgi_json argument = sgi_json_get(in->params, "argument");
    sgi_call_request request = {.kind = &sgi_call_completion, .name = name};
    request.tool = sgi_item_find(
        server, is_prompt ? SEGUE_ITEM_PROMPT : SEGUE_ITEM_RESOURCE_TEMPLATE, name);
    if (!request.tool && !is_prompt)
        request.tool = sgi_item_find(server, SEGUE_ITEM_RESOURCE, name);
    sgi_sight sight = sgi_item_sight(in, request.tool, sgi_completion_complete);
    if (sight == SGI_SIGHT_LATER)
        return;
    if (sight == SGI_HIDDEN)
        sgi_refuse_unknown_name(in, SGI_RPC_INVALID_PARAMS, "Unknown reference",
                                is_prompt ? "name" : "uri", name);
    else if (!sgi_inbound_may_use_item(in, request.tool))
        return;
    else if (!is_completable(in, argument, sgi_json_get(in->params, "context")))
        refuse(in, "params.argument needs a name and a value, and the members of "
                   "context.arguments have to be strings");
    else if (!request.tool->options.on_completion)
        answer_nothing(in);
    else {
        char *copy = sgi_text_dup(sgi_engine_mem(server->engine), argument);
        if (copy)
            run(in, &request, copy);
        else
            sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    }
}

void sgi_completion_complete(const sgi_inbound *in)
{
    sgi_json ref = sgi_json_get(in->params, "ref");
    sgi_json type = sgi_json_get(ref, "type");
    bool is_prompt = sgi_json_string_is(type, SGI_STR("ref/prompt"));
    sgi_buf name;
    if (!is_prompt && !sgi_json_string_is(type, SGI_STR("ref/resource"))) {
        refuse(in, "params.ref.type is neither ref/prompt nor ref/resource");
        return;
    }
    sgi_buf_init(&name, sgi_engine_mem(in->peer->server->engine));
    if (read_name(in, sgi_json_get(ref, is_prompt ? "name" : "uri"),
                  "params.ref has no valid name or uri", &name))
        complete(in, is_prompt, sgi_buf_str(&name));
    sgi_buf_free(&name);
}

/* ---- the methods ---- */

static const sgi_method *find(const sgi_method *table, sgi_str name)
{
    for (; table->name; table++)
        if (sgi_str_eq(sgi_str_of(table->name), name))
            return table;
    return NULL;
}

/* Returns the method of this name. Returns NULL when there is no such method, or when no
 * item of the method's type was ever added. */
const sgi_method *sgi_item_find_method(const segue_server *server, sgi_version version,
                                       sgi_str name)
{
    static const sgi_method of_resources[] = {
        {"resources/read", 0, sgi_resources_read},
        {"resources/list", 0, sgi_resources_list},
        {"resources/templates/list", 0, sgi_templates_list},
        {NULL, 0, NULL},
    };
    static const sgi_method of_subscribing[] = {
        {"resources/subscribe", 0, sgi_resources_subscribe},
        {"resources/unsubscribe", 0, sgi_resources_unsubscribe},
        {NULL, 0, NULL},
    };
    static const sgi_method of_prompts[] = {
        {"prompts/get", 0, sgi_prompts_get},
        {"prompts/list", 0, sgi_prompts_list},
        {NULL, 0, NULL},
    };
    static const sgi_method of_completion[] = {
        {"completion/complete", 0, sgi_completion_complete},
        {NULL, 0, NULL},
    };
    const sgi_method *found = NULL;
    if (sgi_items_served(server, SEGUE_ITEM_RESOURCE))
        found = find(of_resources, name);
    if (!found && sgi_items_served(server, SEGUE_ITEM_RESOURCE) &&
        sgi_facts(version)->has_subscribe)
        found = find(of_subscribing, name);
    if (!found && sgi_items_served(server, SEGUE_ITEM_PROMPT))
        found = find(of_prompts, name);
    if (!found && server->completes)
        found = find(of_completion, name);
    return found;
}
