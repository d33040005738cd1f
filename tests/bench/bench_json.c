/* The cost of the JSON reader, over documents that are the same on every run: one line of
 * JSON for each figure.
 *
 * bench_json --write DIRECTORY writes the documents, for json_peers.cc. */
#include "bench/cpu_time.h"
#include "wire/json_read.h"
#include "wire/json_shape.h"
#include "wire/json_write.h"

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 0x5a, len);
    return 0;
}

static const char call_text[] =
    "{\"jsonrpc\":\"2.0\",\"id\":48151,\"method\":\"tools/call\",\"params\":{\"name\":"
    "\"get_weather\",\"arguments\":{\"city\":\"New "
    "York\",\"units\":\"metric\",\"days\":5,"
    "\"detail\":true},\"_meta\":{\"progressToken\":\"tok-48151\",\"io."
    "modelcontextprotocol/"
    "related-task\":{\"taskId\":\"t-001\"}}}}";

static const char note_text[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/partial_result\",\"params\":{"
    "\"partialResultToken\":\"prt-7c\",\"seq\":17,\"content\":[{\"type\":\"text\","
    "\"text\":"
    "\"Once upon a time, in a land far away,\\na fox.\",\"annotations\":{"
    "\"audience\":[\"user\",\"assistant\"],\"priority\":0.75}}],\"_meta\":{"
    "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"task-17\"}}}}";

/* Writes words of a small vocabulary, chosen by a counter: text without randomness. */
static void write_prose(sgi_jw *w, const char *name, unsigned at, unsigned words)
{
    static const char *const vocabulary[] = {
        "returns", "the",      "list",   "of",       "matching",  "records", "sorted",
        "by",      "date",     "when",   "a",        "filter",    "is",      "given",
        "and",     "limits",   "output", "to",       "the first", "page",    "unless",
        "asked",   "for more", "see",    "\"next\"", "cursor",    "in",      "UTC"};
    char text[512];
    size_t len = 0;
    for (unsigned i = 0; i < words; i++, at = at * 5 + 3)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "",
                             vocabulary[at % (sizeof vocabulary / sizeof *vocabulary)]);
    sgi_jw_member_string(w, name, (sgi_str){text, len});
}

static void write_property(sgi_jw *w, unsigned tool, unsigned property)
{
    static const char *const names[] = {"query", "limit",    "cursor", "includeArchived",
                                        "tags",  "ordering", "window", "format"};
    static const char *const types[] = {"string", "integer", "string", "boolean"};
    sgi_jw_key(w, names[property % 8]);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "type", sgi_str_of(types[property % 4]));
    write_prose(w, "description", tool * 31 + property, 9 + (tool + property) % 5);
    if (property % 4 == 1) {
        sgi_jw_member_int(w, "minimum", 1);
        sgi_jw_member_int(w, "maximum", 500);
        sgi_jw_member_int(w, "default", 50);
    }
    if (property % 4 == 2) {
        sgi_jw_key(w, "enum");
        sgi_jw_open(w, '[');
        for (unsigned i = 0; i < 4; i++)
            sgi_jw_string(w, sgi_str_of(types[i % 2 ? 3 : i]));
        sgi_jw_close(w, ']');
    }
    sgi_jw_close(w, '}');
}

static void write_tool(sgi_jw *w, unsigned tool)
{
    char name[64];
    snprintf(name, sizeof name, "workspace_search_records_%03u", tool);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "name", sgi_str_of(name));
    write_prose(w, "title", tool, 4);
    write_prose(w, "description", tool * 7, 30 + tool % 8);
    sgi_jw_key(w, "inputSchema");
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "type", SGI_STR("object"));
    sgi_jw_key(w, "properties");
    sgi_jw_open(w, '{');
    for (unsigned i = 0; i < 6; i++)
        write_property(w, tool, i);
    sgi_jw_close(w, '}');
    sgi_jw_member_raw(w, "required", SGI_STR("[\"query\",\"limit\"]"));
    sgi_jw_member_raw(w, "additionalProperties", SGI_STR("false"));
    sgi_jw_close(w, '}');
    sgi_jw_member_raw(w, "annotations",
                      SGI_STR("{\"readOnlyHint\":true,\"openWorldHint\":false}"));
    sgi_jw_close(w, '}');
}

static void write_list(sgi_buf *buf)
{
    sgi_jw w = sgi_jw_to(buf);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "jsonrpc", SGI_STR("2.0"));
    sgi_jw_member_int(&w, "id", 2);
    sgi_jw_key(&w, "result");
    sgi_jw_open(&w, '{');
    sgi_jw_key(&w, "tools");
    sgi_jw_open(&w, '[');
    for (unsigned i = 0; i < 86; i++)
        write_tool(&w, i);
    sgi_jw_close(&w, ']');
    sgi_jw_close(&w, '}');
    sgi_jw_close(&w, '}');
}

static void write_keys(sgi_buf *buf)
{
    sgi_buf_add_char(buf, '{');
    char member[96];
    for (int i = 0; i < 100000; i++)
        sgi_buf_add(buf, member,
                    (size_t)snprintf(member, sizeof member,
                                     "%s\"a-prefix-all-share-%06d-and-a-suffix\":1",
                                     i ? "," : "", i));
    sgi_buf_add_char(buf, '}');
}

typedef struct job {
    sgi_json_reader reader;
    sgi_str text;
} job;

static void read_job(void *user)
{
    job *j = user;
    sgi_json_member members[8];
    size_t count;
    if (!sgi_json_read(&j->reader, j->text, members, 8, &count, NULL))
        abort();
}

/* Calls that differ in three values, read as a conversation reads its messages. */
#define CALLS 16
typedef struct shaped_job {
    sgi_json_reader *reader;
    sgi_json_shapes shapes;
    char texts[CALLS][512];
    size_t next;
} shaped_job;

static void fill_calls(shaped_job *j)
{
    for (int i = 0; i < CALLS; i++)
        snprintf(j->texts[i], sizeof j->texts[i],
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"get_weather\",\"arguments\":{\"city\":\"New York %.*s\","
                 "\"units\":\"metric\",\"days\":%d,\"detail\":true},\"_meta\":{"
                 "\"progressToken\":\"tok-48151\",\"io.modelcontextprotocol/"
                 "related-task\":{\"taskId\":\"t-001\"}}}}",
                 48151 + i, i, "ABCDEFGHIJKLMNOP", i);
    sgi_json_shapes_init(&j->shapes);
}

static void read_shaped_job(void *user)
{
    static const sgi_str names[2][2] = {{SGI_STR_INIT("params"), SGI_STR_INIT("result")},
                                        {SGI_STR_INIT("_meta"), SGI_STR_INIT("payload")}};
    shaped_job *j = user;
    sgi_json_part parts[2];
    sgi_json_part_names trail = {names, parts, 2, &j->shapes};
    sgi_json_member members[16];
    size_t count;
    if (!sgi_json_read_parts(j->reader, sgi_str_of(j->texts[j->next++ % CALLS]), members,
                             16, &count, NULL, &trail))
        abort();
}

static double measure_text(job *j, sgi_str text)
{
    j->text = text;
    return measure(read_job, j);
}

static void escape_job(void *user)
{
    sgi_buf *pair = user;
    sgi_buf_reset(&pair[1], SIZE_MAX);
    sgi_json_escape(&pair[1], sgi_buf_str(&pair[0]));
}

/* Writes a document into a file of the directory. */
static void keep(const char *directory, const char *name, sgi_str text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text.p, 1, text.n, file) != text.n || fclose(file) != 0)
        abort();
}

int main(int argc, char **argv)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    job j;
    sgi_json_reader_init(&j.reader, &env, SGI_JSON_MAX_BYTES, 512);
    sgi_buf list, keys, escaped[2];
    sgi_buf_init(&list, env.mem);
    sgi_buf_init(&keys, env.mem);
    sgi_buf_init(&escaped[0], env.mem);
    sgi_buf_init(&escaped[1], env.mem);
    write_list(&list);
    write_keys(&keys);
    sgi_buf_add_str(&escaped[0], sgi_buf_str(&list));
    if (list.failed || keys.failed || escaped[0].failed)
        return 1;
    if (argc == 3 && !strcmp(argv[1], "--write")) {
        keep(argv[2], "call", SGI_STR(call_text));
        keep(argv[2], "note", SGI_STR(note_text));
        keep(argv[2], "list", sgi_buf_str(&list));
        return 0;
    }
    print_figure("json_list_bytes", (double)list.len);
    print_figure("json_list_100k_gbps",
                 (double)list.len / measure_text(&j, sgi_buf_str(&list)));
    print_figure("json_call_250b_ns", measure_text(&j, SGI_STR(call_text)));
    static shaped_job shaped;
    shaped.reader = &j.reader;
    fill_calls(&shaped);
    print_figure("json_call_shaped_ns", measure(read_shaped_job, &shaped));
    print_figure("json_note_330b_ns", measure_text(&j, SGI_STR(note_text)));
    print_figure("json_100k_keys_ns_per_key",
                 measure_text(&j, sgi_buf_str(&keys)) / 100000);
    print_figure("json_escape_gbps", (double)list.len / measure(escape_job, escaped));
    sgi_json_reader_free(&j.reader);
    sgi_buf_free(&list);
    sgi_buf_free(&keys);
    sgi_buf_free(&escaped[0]);
    sgi_buf_free(&escaped[1]);
    return 0;
}
