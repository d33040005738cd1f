/* Plays a vector against the library. It uses either a server with the fixtures behind a
 * raw client (the world's pair), or a client with the kit's server, which sends the
 * vector's messages. Steps are played in order, and each message is compared once. A
 * message that is left over at the end is a fault, too. */
#include "support/client_kit.h"
#include "support/draft_wire.h"
#include "support/model_fixtures.h"
#include "support/vector.h"
#include "support/world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CALLS 16

typedef struct stage {
    bindings names;
    bool is_client;
    world w;
    wire *c;
    kit k;
    bool has_host;
    model m; /* the host of a client */
    struct {
        char *name;
        record *r;
    } calls[MAX_CALLS];
    size_t call_count;
} stage;

/* ---- what both roles have ---- */

static void say(stage *s, const char *line)
{
    if (s->is_client)
        kit_say(&s->k, "%s", line);
    else
        wire_send(s->c, line);
}

static const char *hear(stage *s)
{
    return s->is_client ? kit_heard(&s->k) : wire_next(s->c);
}

static char *play_in(stage *s, sgi_json value)
{
    char *wrong;
    char *line = vector_fill(&s->names, value, &wrong);
    if (line)
        say(s, line);
    free(line);
    return wrong;
}

static char *play_in_text(stage *s, sgi_json step)
{
    char *text = vector_string(step, "in_text");
    if (!text)
        return vector_text("in_text is no string");
    say(s, text);
    free(text);
    return NULL;
}

static char *play_out(stage *s, sgi_json pattern)
{
    const char *line = hear(s);
    if (!line)
        return vector_text("expected %.*s, and nothing came",
                           (int)(pattern.n < 800 ? pattern.n : 800), pattern.p);
    char *wrong = vector_match(&s->names, pattern, (sgi_json){line, strlen(line)});
    if (!wrong)
        return NULL;
    char *both = vector_text("%s\n  in %s", wrong, line);
    free(wrong);
    return both;
}

static char *play_quiet(stage *s)
{
    const char *line = hear(s);
    return line ? vector_text("nobody expected %s", line) : NULL;
}

static char *play_advance(stage *s, sgi_json value)
{
    int64_t ms;
    if (!sgi_json_read_int(value, &ms) || ms < 0)
        return vector_text("advance_ms is no time");
    if (s->is_client)
        kit_advance(&s->k, ms);
    else
        world_advance(&s->w, ms);
    return NULL;
}

/* Cuts the connection and makes a new one; a client reconnects by itself. */
static char *play_cut(stage *s)
{
    if (s->is_client) {
        kit_cut(&s->k);
        return NULL;
    }
    wire_cut(s->c);
    s->c = world_connect(&s->w, "vector");
    return NULL;
}

/* ---- actions and callbacks of the application of a client ---- */

/* Returns the call that a step names. */
static record *find_call(stage *s, sgi_json step, const char *known, char **wrong)
{
    record *r = NULL;
    *wrong = vector_unknown(step, known);
    char *name = vector_string(step, "call");
    for (size_t i = 0; name && i < s->call_count; i++)
        if (!strcmp(s->calls[i].name, name))
            r = s->calls[i].r;
    if (!r && !*wrong)
        *wrong = vector_text("there is no call %s", name ? name : "without a name");
    free(name);
    return r;
}

static char *play_call(stage *s, sgi_json step)
{
    char *params = NULL;
    char *wrong = vector_unknown(step, "|as|method|params|");
    char *name = vector_string(step, "as");
    char *method = vector_string(step, "method");
    sgi_json given = sgi_json_get(step, "params");
    if (!wrong && (!name || !method || s->call_count == MAX_CALLS))
        wrong = vector_text("a call lacks its name or method, or is one too many");
    if (!wrong && given.n)
        params = vector_fill(&s->names, given, &wrong);
    if (!wrong) {
        s->calls[s->call_count].r = kit_start(&s->k, method, params, NULL);
        s->calls[s->call_count++].name = name;
        name = NULL;
    }
    free(name);
    free(method);
    free(params);
    return wrong;
}

static char *play_answer(stage *s, sgi_json step)
{
    char *wrong;
    record *r = find_call(s, step, "|call|key|result|", &wrong);
    char *key = vector_string(step, "key");
    char *result =
        wrong ? NULL : vector_fill(&s->names, sgi_json_get(step, "result"), &wrong);
    if (r && !key && r->last_key)
        key = strdup(r->last_key);
    if (!wrong && (!key || segue_request_answer(r->request, key, result, strlen(result),
                                                NULL) != SEGUE_OK))
        wrong = vector_text("nobody asked for %s", key ? key : "nothing");
    free(key);
    free(result);
    return wrong;
}

static char *play_cancel(stage *s, sgi_json step)
{
    char *wrong;
    record *r = find_call(s, step, "|call|", &wrong);
    if (r && !wrong)
        segue_request_cancel(r->request);
    return wrong;
}

/* Returns the lines of the record's log with this beginning, as items of an array. */
static char *log_items(const record *r, const char *begin)
{
    char *text = NULL;
    size_t size = 0, n = strlen(begin);
    FILE *out = open_memstream(&text, &size);
    const char *comma = "";
    fputc('[', out);
    for (const char *line = r->log ? r->log : ""; *line;) {
        const char *end = strchr(line, '\n');
        if (!strncmp(line, begin, n)) {
            fprintf(out, "%s\"", comma);
            for (const char *at = line + n; at < end; at++)
                fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
            fputc('"', out);
            comma = ",";
        }
        line = end + 1;
    }
    fputc(']', out);
    fclose(out);
    return text;
}

static char *match_log(stage *s, sgi_json step, const char *known, const char *begin,
                       const char *member)
{
    char *wrong;
    record *r = find_call(s, step, known, &wrong);
    if (wrong)
        return wrong;
    char *items = log_items(r, begin);
    wrong = vector_match(&s->names, sgi_json_get(step, member),
                         (sgi_json){items, strlen(items)});
    free(items);
    return wrong;
}

static char *play_asked(stage *s, sgi_json step)
{
    char *wrong;
    record *r = find_call(s, step, "|call|key|method|", &wrong);
    char *key = vector_string(step, "key");
    char *method = vector_string(step, "method");
    if (r && !key)
        key = strdup(r->last_key ? r->last_key : "");
    char *begin = vector_text("input %s %s ", key ? key : "", method ? method : "");
    if (!wrong && (!r->log || !strstr(r->log, begin)))
        wrong = vector_text("was not asked: %s", begin);
    free(key);
    free(method);
    free(begin);
    return wrong;
}

/* SEGUE_E_PROTOCOL is "protocol", SEGUE_OK is "ok". */
static bool is_status(segue_status status, const char *word)
{
    const char *name = segue_status_name(status);
    name += strlen("SEGUE_");
    name += strncmp(name, "E_", 2) ? 0 : 2;
    for (; *name && *word == tolower((unsigned char)*name); name++)
        word++;
    return !*name && !*word;
}

static char *play_end(stage *s, sgi_json step)
{
    char *wrong;
    int64_t code = 0;
    record *r = find_call(s, step, "|call|status|code|result|", &wrong);
    char *status = vector_string(step, "status");
    sgi_json result = sgi_json_get(step, "result");
    sgi_json_read_int(sgi_json_get(step, "code"), &code);
    if (!wrong && !r->completed)
        wrong = vector_text("the call has not ended");
    if (!wrong && (!status || !is_status(r->status, status)))
        wrong =
            vector_text("it ended with %s: %s", segue_status_name(r->status), r->message);
    if (!wrong && code && code != r->rpc_code)
        wrong = vector_text("its code is %d", (int)r->rpc_code);
    if (!wrong && result.n)
        wrong = vector_match(&s->names, result,
                             (sgi_json){r->result, r->result ? strlen(r->result) : 0});
    free(status);
    return wrong;
}

/* Checks that a bad message of the peer was logged, not only dropped. */
static char *play_warned(stage *s)
{
    if (!*s->k.last_warning)
        return vector_text("no warning came");
    *s->k.last_warning = 0;
    return NULL;
}

static char *play_notified(stage *s, sgi_json pattern)
{
    const char *params = strchr(s->k.last_notification, ' ');
    if (!params)
        return vector_text("no notification came");
    char *line = vector_text("{\"method\":\"%.*s\",\"params\":%s}",
                             (int)(params - s->k.last_notification),
                             s->k.last_notification, params[1] ? params + 1 : "{}");
    char *wrong = vector_is_json(line, strlen(line))
                      ? vector_match(&s->names, pattern, (sgi_json){line, strlen(line)})
                      : vector_text("too long: %s", line);
    *s->k.last_notification = 0;
    free(line);
    return wrong;
}

/* Plays the reaction of a client's host to the last question that the host received. */
static char *play_host(stage *s, sgi_json step)
{
    char *wrong = vector_unknown(step, "|asked|say|complete|fail|cancelled|");
    model_call *c = s->m.calls;
    char *text = vector_string(step, "say");
    sgi_json asked = sgi_json_get(step, "asked");
    int64_t code = 0;
    bool failed =
        sgi_json_read_int(sgi_json_get(sgi_json_get(step, "fail"), "code"), &code);
    if (wrong || !c) {
        wrong = wrong ? wrong : vector_text("the host was not asked");
    } else if (text) {
        model_say(c, text);
    } else if (asked.n) {
        wrong = vector_match(&s->names, asked, (sgi_json){c->params, strlen(c->params)});
    } else if (sgi_json_get(step, "cancelled").n) {
        wrong = c->cancelled ? NULL : vector_text("the host's call is not cancelled");
    } else if (!c->call) {
        wrong = vector_text("the host's call has ended");
    } else if (failed) {
        char *message = vector_string(sgi_json_get(step, "fail"), "message");
        model_fail(c, (int)code, message ? message : "");
        free(message);
    } else {
        model_complete(c);
    }
    free(text);
    return wrong;
}

static char *play_client_step(stage *s, const sgi_json_member *is)
{
    if (sgi_json_key_is(is, "call"))
        return play_call(s, is->value);
    if (sgi_json_key_is(is, "answer"))
        return play_answer(s, is->value);
    if (sgi_json_key_is(is, "cancel"))
        return play_cancel(s, is->value);
    if (sgi_json_key_is(is, "segments"))
        return match_log(s, is->value, "|call|texts|", "segment ", "texts");
    if (sgi_json_key_is(is, "statuses"))
        return match_log(s, is->value, "|call|texts|", "status ", "texts");
    if (sgi_json_key_is(is, "asked"))
        return play_asked(s, is->value);
    if (sgi_json_key_is(is, "end"))
        return play_end(s, is->value);
    if (sgi_json_key_is(is, "warned"))
        return play_warned(s);
    if (sgi_json_key_is(is, "host"))
        return play_host(s, is->value);
    if (sgi_json_key_is(is, "notified"))
        return play_notified(s, is->value);
    return vector_text("no client knows the step \"%.*s\"", (int)is->key.n, is->key.p);
}

static char *play_step(stage *s, sgi_json step)
{
    sgi_json_member is, second;
    size_t at = 0;
    if (!sgi_json_next_member(step, &at, &is) || sgi_json_next_member(step, &at, &second))
        return vector_text("a step has one member");
    if (sgi_json_key_is(&is, "in"))
        return play_in(s, is.value);
    if (sgi_json_key_is(&is, "in_text"))
        return play_in_text(s, step);
    if (sgi_json_key_is(&is, "out"))
        return play_out(s, is.value);
    if (sgi_json_key_is(&is, "quiet"))
        return play_quiet(s);
    if (sgi_json_key_is(&is, "advance_ms"))
        return play_advance(s, is.value);
    if (sgi_json_key_is(&is, "cut"))
        return play_cut(s);
    if (s->is_client)
        return play_client_step(s, &is);
    return vector_text("no server knows the step \"%.*s\"", (int)is.key.n, is.key.p);
}

static char *play_steps(stage *s, sgi_json steps, const char *where)
{
    sgi_json step;
    int number = 1;
    for (size_t at = 0; sgi_json_next_item(steps, &at, &step); number++) {
        char *wrong = play_step(s, step);
        if (wrong) {
            char *told = vector_text("%s %d: %s", where, number, wrong);
            free(wrong);
            return told;
        }
    }
    return NULL;
}

static void questions_as_tasks(segue_server_options *options)
{
    options->question_ttl_ms = 60000;
}

static void begin_server(stage *s, sgi_json vector)
{
    if (vector_needs(vector, "draft_tasks"))
        s->w.tune = draft_on;
    if (vector_needs(vector, "questions_as_tasks"))
        s->w.tune = questions_as_tasks;
    world_begin(&s->w);
    s->c = world_connect(&s->w, "vector");
}

/* capabilities: the capabilities that the application of a client declares; NULL =
 * none. */
static void begin_client(stage *s, sgi_json vector, const char *revision,
                         const char *capabilities)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    if (strcmp(revision, "2026-07-28") != 0)
        options.era = SEGUE_ERA_LEGACY;
    if (vector_needs(vector, "draft_tasks"))
        options.dialects_on |= SEGUE_DIALECT_DRAFT_TASKS;
    if (vector_needs(vector, "resumable"))
        options.dialects_on |= SEGUE_DIALECT_RESUMABLE;
    options.capabilities = capabilities;
    s->k.can_reopen = vector_needs(vector, "cut");
    s->has_host = vector_needs(vector, "host");
    kit_prepare(&s->k, 0);
    if (s->has_host) {
        model_begin(&s->m, s->k.runtime, NULL, NULL);
        options.host = s->m.host;
    }
    kit_connect(&s->k);
    kit_open(&s->k, &options);
}

static void end(stage *s)
{
    if (s->has_host)
        model_end(&s->m);
    if (s->is_client)
        kit_end(&s->k);
    else
        world_end(&s->w);
    for (size_t i = 0; i < s->call_count; i++)
        free(s->calls[i].name);
    bindings_free(&s->names);
}

char *vector_play(const vector_file *file, sgi_json vector)
{
    sgi_json_member let;
    stage *s = calloc(1, sizeof *s);
    char *role = vector_string(vector, "role");
    char *revision = vector_string(vector, "revision");
    char *prelude = vector_text("%s %s", role, revision);
    s->is_client = !strcmp(role, "client");
    for (size_t at = 0; sgi_json_next_member(file->let, &at, &let);)
        bindings_set(&s->names, let.key, let.value);
    sgi_json can = sgi_json_get(vector, "capabilities");
    char *capabilities = can.n ? strndup(can.p, can.n) : NULL;
    if (s->is_client)
        begin_client(s, vector, revision, capabilities);
    else
        begin_server(s, vector);
    char *wrong = play_steps(s, sgi_json_get(file->begin, prelude), "begin");
    if (!wrong)
        wrong = play_steps(s, sgi_json_get(vector, "steps"), "step");
    if (!wrong)
        wrong = play_steps(s, sgi_json_get(file->after, prelude), "after");
    if (!wrong)
        wrong = play_quiet(s);
    end(s);
    free(s);
    free(role);
    free(revision);
    free(prelude);
    free(capabilities);
    return wrong;
}
