/* The fixtures of the other scenarios: plain calls with every kind of content, progress,
 * log messages, errors, headers and a list of tools that changes. The suite asks for
 * these texts. */
#include "conformance/stage.h"

#include <segue/segue_ext.h>
#include <string.h>

const unsigned char red_dot[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
    0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
    0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xf7, 0x03, 0x41,
    0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
const size_t red_dot_size = sizeof red_dot;

static const unsigned char silence[] = {
    0x52, 0x49, 0x46, 0x46, 0x2c, 0x00, 0x00, 0x00, 0x57, 0x41, 0x56, 0x45, 0x66,
    0x6d, 0x74, 0x20, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x40, 0x1f,
    0x00, 0x00, 0x80, 0x3e, 0x00, 0x00, 0x02, 0x00, 0x10, 0x00, 0x64, 0x61, 0x74,
    0x61, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

/* ---- content ---- */

static void run_simple_text(stage *s, segue_call *call)
{
    complete_text(s, call, "This is a simple text response for testing.", 0);
}

static void run_image(stage *s, segue_call *call)
{
    segue_content *content = new_content(s);
    segue_content_add_blob(content, "image", "image/png", red_dot, sizeof red_dot, NULL);
    complete(call, content);
}

static void run_audio(stage *s, segue_call *call)
{
    segue_content *content = new_content(s);
    segue_content_add_blob(content, "audio", "audio/wav", silence, sizeof silence, NULL);
    complete(call, content);
}

static void run_resource(stage *s, segue_call *call)
{
    static const char json[] =
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
        "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource "
        "content.\"}}";
    segue_content *content = new_content(s);
    segue_content_add_json(content, json, sizeof json - 1, NULL);
    complete(call, content);
}

static void run_mixed(stage *s, segue_call *call)
{
    static const char text[] = "Multiple content types test:";
    static const char json[] =
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
        "\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\","
        "\\\"value\\\":123}\"}}";
    segue_content *content = new_content(s);
    segue_content_add_text(content, text, sizeof text - 1, NULL);
    segue_content_add_blob(content, "image", "image/png", red_dot, sizeof red_dot, NULL);
    segue_content_add_json(content, json, sizeof json - 1, NULL);
    complete(call, content);
}

static void run_error(stage *s, segue_call *call)
{
    complete_text(s, call, "This tool intentionally returns an error for testing", 1);
}

static void run_schema(stage *s, segue_call *call)
{
    complete_text(s, call, "The schema is what matters", 0);
}

/* ---- progress and log ---- */

static void step_logging(job *j)
{
    static const char *const texts[] = {"\"Tool execution started\"",
                                        "\"Tool processing data\"",
                                        "\"Tool execution completed\""};
    segue_call_log(j->call, "info", texts[j->at], strlen(texts[j->at]), NULL);
    job_wait(j, 50);
    if (++j->at == 3)
        complete_text(j->s, job_end(j), "Logged three times", 0);
}

static void run_logging(stage *s, segue_call *call)
{
    job_start(s, call, step_logging, 0);
}

static void step_progress(job *j)
{
    segue_call_progress(j->call, j->at * 50, 100, NULL, NULL);
    job_wait(j, 50);
    if (++j->at == 3)
        complete_text(j->s, job_end(j), "Reported progress three times", 0);
}

static void run_progress(stage *s, segue_call *call)
{
    job_start(s, call, step_progress, 0);
}

static void step_reconnection(job *j)
{
    complete_text(j->s, job_end(j), "Reconnection test completed successfully", 0);
}

/* The result comes while the client is away. In revisions without such streams the call
 * is an ordinary one. */
static void run_reconnection(stage *s, segue_call *call)
{
    segue_call_hang_up(call, 500, NULL);
    job_start(s, call, step_reconnection, 100);
}

/* A client that did not ask for log messages gets none, however many the tool sends. */
static void run_diagnostic_logging(stage *s, segue_call *call)
{
    segue_call_log(call, "emergency", "\"Nobody asked for this\"", 23, NULL);
    complete_text(s, call, "Logging evaluated", 0);
}

/* ---- capabilities of the client ---- */

/* Needs a model at the client: the call fails when sampling is not declared. */
static void run_missing_capability(stage *s, segue_call *call)
{
    static const char needs[] = "{\"requiredCapabilities\":{\"sampling\":{}}}";
    size_t len;
    const char *params = segue_call_params(call, &len);
    if (memmem(params, len, "\"sampling\"", 10)) {
        complete_text(s, call, "Sampling is declared", 0);
        return;
    }
    segue_call_fail(call, -32021, "Missing required client capability: sampling", needs,
                    sizeof needs - 1, NULL);
    segue_call_free(call);
}

static void run_headers(stage *s, segue_call *call)
{
    const char *region = "nowhere";
    segue_call_argument_text(call, "region", &region, NULL);
    complete_text(s, call, region, 0);
}

/* Adds a tool, or removes it again: clients that listen must be notified. */
static void run_tool_change(stage *s, segue_call *call)
{
    static const tool extra = {TOOL("extra", "Comes and goes", NO_ARGUMENTS),
                               run_simple_text, SEGUE_TASK_NEVER};
    if (segue_server_remove(s->server, SEGUE_ITEM_TOOL, "extra") != SEGUE_OK)
        stage_add(s, &extra, 1);
    complete_text(s, call, "Mutation triggered", 0);
}

/* ---- the list ---- */

#define SCHEMA_2020_12                                                                   \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\"," \
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\","            \
    "\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}}" \
    ","                                                                                  \
    "\"properties\":{\"name\":{\"type\":\"string\"},"                                    \
    "\"address\":{\"$ref\":\"#/$defs/address\"},"                                        \
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"            \
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                  \
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"   \
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                  \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"             \
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

segue_status content_tools_add(stage *s)
{
    /* The suite calls the first tool to check headers, so that tool must accept any
     * arguments. */
    static const tool tools[] = {
        {TOOL("test_simple_text", "One block of text", NO_ARGUMENTS), run_simple_text, 0},
        {TOOL("test_image_content", "One image", NO_ARGUMENTS), run_image, 0},
        {TOOL("test_audio_content", "One sound", NO_ARGUMENTS), run_audio, 0},
        {TOOL("test_embedded_resource", "One resource", NO_ARGUMENTS), run_resource, 0},
        {TOOL("test_multiple_content_types", "One of each", NO_ARGUMENTS), run_mixed, 0},
        {TOOL("test_error_handling", "Fails", NO_ARGUMENTS), run_error, 0},
        {TOOL("test_tool_with_logging", "Logs thrice", NO_ARGUMENTS), run_logging, 0},
        {TOOL("test_tool_with_progress", "Goes on", NO_ARGUMENTS), run_progress, 0},
        {TOOL("test_reconnection", "Hangs up", NO_ARGUMENTS), run_reconnection, 0},
        {TOOL("test_logging_tool", "Logs loudly", NO_ARGUMENTS), run_diagnostic_logging,
         0},
        {TOOL("test_missing_capability", "Needs sampling", NO_ARGUMENTS),
         run_missing_capability, 0},
        {TOOL("test_trigger_tool_change", "Changes the list", NO_ARGUMENTS),
         run_tool_change, 0},
        {TOOL("test_custom_headers", "Has an argument that a header repeats",
              "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
              "\"x-mcp-header\":\"Region\"},\"shard\":{\"type\":\"integer\","
              "\"x-mcp-header\":\"Shard\"}},\"required\":[\"region\",\"shard\"]}"),
         run_headers, 0},
        {TOOL("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features",
              SCHEMA_2020_12),
         run_schema, 0},
    };
    return stage_add(s, tools, sizeof tools / sizeof *tools);
}
