/* The requests of the board's page about one task. Each makes one look into the store
 * (inspect/inspect.h), so nothing is remembered between two requests. */
#include "board/board.h"

#include "base/percent.h"
#include "base/thresholds.h"
#include "engine/error.h"
#include "inspect/inspect.h"
#include "inspect/rerun.h"
#include "inspect/summary_cache.h"

#define ID_SIZE ((size_t)512)   /* of a decoded task id; longer ones are not found */
#define IDS_SIZE ((size_t)8192) /* of the decoded ids of one request */

/* ---- answers ---- */

static int32_t http_status_of(segue_status status)
{
    switch (status) {
    case SEGUE_E_INVALID:
        return 400;
    case SEGUE_E_NOT_FOUND:
        return 404;
    case SEGUE_E_STATE:
    case SEGUE_E_TERMINAL:
        return 409;
    case SEGUE_E_UNSUPPORTED:
        return 501;
    default:
        return 503;
    }
}

static const char *problem_of(segue_status status)
{
    switch (status) {
    case SEGUE_E_INVALID:
        return "The request lacks a parameter, or has a wrong one";
    case SEGUE_E_NOT_FOUND:
        return "The store has no such task, or the task has no such question";
    case SEGUE_E_STATE:
        return "The task has not ended";
    case SEGUE_E_TERMINAL:
        return "The task has ended";
    case SEGUE_E_UNSUPPORTED:
        return "This store cannot list its tasks";
    default:
        return sgi_status_text(status);
    }
}

static void refuse(sgi_board_request *request, segue_status status, const char *why)
{
    sgi_jw w = sgi_jw_to(&request->json);
    sgi_buf_truncate(&request->json, 0);
    request->status = http_status_of(status);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "error", sgi_str_of(why));
    sgi_jw_close(&w, '}');
}

void sgi_board_fail(sgi_board_request *request, segue_status status)
{
    refuse(request, status, problem_of(status));
}

/* ---- parameters ---- */

static bool find_parameter(const sgi_board_request *request, const char *name,
                           sgi_str *value)
{
    sgi_str rest = sgi_buf_str(&request->query), wanted = sgi_str_of(name);
    while (rest.n) {
        const char *end = memchr(rest.p, '&', rest.n);
        sgi_str pair = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        rest = end ? (sgi_str){end + 1, rest.n - pair.n - 1} : (sgi_str){0};
        if (sgi_str_skip(&pair, wanted) && sgi_str_skip(&pair, SGI_STR("="))) {
            *value = pair;
            return true;
        }
    }
    return false;
}

bool sgi_board_parameter(const sgi_board_request *request, const char *name, char *to,
                         size_t size)
{
    sgi_str value;
    return find_parameter(request, name, &value) && sgi_percent_decode(to, size, value);
}

/* A position in a log; 0 without the parameter. Returns false for other texts than
 * digits, and for a number that no log has. */
static bool position_of(const sgi_board_request *request, uint64_t *position)
{
    sgi_str value;
    *position = 0;
    if (!find_parameter(request, "after", &value))
        return true;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9' || *position > INT64_MAX / 10 - 1)
            return false;
        *position = 10 * *position + (uint64_t)(value.p[i] - '0');
    }
    return value.n > 0;
}

static bool id_of(const sgi_board_request *request, char id[ID_SIZE])
{
    return sgi_board_parameter(request, "id", id, ID_SIZE) && *id;
}

/* ---- reading ---- */

static int32_t add_json(void *user, const char *json, size_t len)
{
    sgi_board_request *request = user;
    if (request->json.len && request->json.p[request->json.len - 1] != '[')
        sgi_buf_add_char(&request->json, ',');
    sgi_buf_add(&request->json, json, len);
    return request->json.len >= SGI_THRESHOLD(board_page_bytes);
}

const uint8_t *sgi_board_principal(const sgi_board_request *request)
{
    return request->is_personal ? request->principal : NULL;
}

static void begin(sgi_board_request *request, sgi_inspection *inspection)
{
    sgi_inspection_begin(inspection, request->store, add_json, request);
    inspection->is_redacted = request->is_redacted;
    inspection->cache = request->cache;
    inspection->only = sgi_board_principal(request);
}

static void end(sgi_board_request *request, sgi_inspection *inspection,
                segue_status status)
{
    if (status == SEGUE_OK && inspection->failed)
        status = SEGUE_E_NOMEM;
    if (status != SEGUE_OK)
        sgi_board_fail(request, status);
    sgi_inspection_end(inspection);
}

static void show_task(sgi_board_request *request)
{
    char id[ID_SIZE];
    sgi_inspection inspection;
    begin(request, &inspection);
    end(request, &inspection,
        id_of(request, id) ? sgi_inspect_one(&inspection, id) : SEGUE_E_INVALID);
}

/* Adds the summaries of the ids, which stand behind each other with commas. An id that
 * the store lacks is left out. Returns the ids for which there was no room. */
static segue_status add_summaries(sgi_inspection *inspection, char *ids, char **rest)
{
    segue_status status = SEGUE_OK;
    size_t count = 0;
    while (ids && *ids && status == SEGUE_OK) {
        if (count++ == SGI_THRESHOLD(board_summaries) ||
            inspection->folded >= SGI_THRESHOLD(board_fold_bytes) || inspection->stop)
            break;
        char *comma = strchr(ids, ',');
        if (comma)
            *comma = 0;
        status = sgi_inspect_brief(inspection, ids);
        if (status == SEGUE_E_NOT_FOUND)
            status = SEGUE_OK;
        ids = comma ? comma + 1 : NULL;
    }
    *rest = ids;
    return status;
}

static void show_summaries(sgi_board_request *request)
{
    char ids[IDS_SIZE], *rest = NULL;
    sgi_inspection inspection;
    begin(request, &inspection);
    sgi_buf_add_lit(&request->json, "{\"tasks\":[");
    segue_status status = SEGUE_E_INVALID;
    if (sgi_board_parameter(request, "ids", ids, sizeof ids))
        status = add_summaries(&inspection, ids, &rest);
    sgi_buf_add_lit(&request->json, "],\"more\":");
    sgi_buf_add_str(&request->json, rest && *rest ? SGI_STR("true}") : SGI_STR("false}"));
    end(request, &inspection, status);
}

/* Answers with entries of a log. "more" says that the log has further ones. */
static void show_entries(sgi_board_request *request)
{
    char id[ID_SIZE];
    uint64_t after;
    int32_t ended = 0;
    sgi_inspection inspection;
    segue_status status = SEGUE_E_INVALID;
    begin(request, &inspection);
    sgi_buf_add_lit(&request->json, "{\"entries\":[");
    if (id_of(request, id) && position_of(request, &after))
        status = sgi_inspect_entries(&inspection, id, after, &ended);
    sgi_buf_add_lit(&request->json, "],\"more\":");
    sgi_buf_add_str(&request->json, inspection.stop ? SGI_STR("true") : SGI_STR("false"));
    sgi_buf_add_lit(&request->json, ",\"ended\":");
    sgi_buf_add_str(&request->json, ended ? SGI_STR("true}") : SGI_STR("false}"));
    end(request, &inspection, status);
}

/* ---- changing ---- */

static void do_command(sgi_board_request *request)
{
    char id[ID_SIZE];
    sgi_str key;
    sgi_inspection inspection;
    segue_status status = SEGUE_E_INVALID;
    begin(request, &inspection);
    if (id_of(request, id) &&
        sgi_inspect_write_command(&inspection, sgi_buf_str(&request->body), &key))
        status = inspection.json.failed
                     ? SEGUE_E_NOMEM
                     : sgi_inspect_command(&inspection, id, sgi_buf_str(&inspection.json),
                                           key);
    sgi_buf_add_lit(&request->json, "{}");
    end(request, &inspection, status);
}

static void do_rerun(sgi_board_request *request)
{
    char id[ID_SIZE], new_id[SGI_OPERATION_TEXT + 1] = "";
    uint64_t after;
    const char *why = NULL;
    sgi_inspection inspection;
    segue_status status = SEGUE_E_INVALID;
    begin(request, &inspection);
    if (id_of(request, id) && position_of(request, &after))
        status = sgi_inspect_rerun(&inspection, id, after, new_id, &why);
    if (why) {
        refuse(request, status, why);
        sgi_inspection_end(&inspection);
        return;
    }
    sgi_jw w = sgi_jw_to(&request->json);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "taskId", sgi_str_of(new_id));
    sgi_jw_close(&w, '}');
    end(request, &inspection, status);
}

static void do_remove(sgi_board_request *request)
{
    char id[ID_SIZE];
    sgi_inspection inspection;
    begin(request, &inspection);
    sgi_buf_add_lit(&request->json, "{}");
    end(request, &inspection,
        id_of(request, id) ? sgi_inspect_remove(&inspection, id) : SEGUE_E_INVALID);
}

/* ---- items ---- */

static const sgi_board_item items[] = {
    {.name = "api/about", .kind = SGI_BOARD_ABOUT},
    {.name = "api/tasks", .kind = SGI_BOARD_READ, .answer = sgi_board_list_tasks},
    {.name = "api/task", .kind = SGI_BOARD_READ, .answer = show_task},
    {.name = "api/summaries", .kind = SGI_BOARD_READ, .answer = show_summaries},
    {.name = "api/entries", .kind = SGI_BOARD_READ, .answer = show_entries},
    {.name = "api/command", .kind = SGI_BOARD_CHANGE, .answer = do_command},
    {.name = "api/rerun", .kind = SGI_BOARD_CHANGE, .answer = do_rerun},
    {.name = "api/remove", .kind = SGI_BOARD_CHANGE, .answer = do_remove},
};

bool sgi_board_is_there(void)
{
    return true;
}

const sgi_board_item *sgi_board_find(sgi_str name)
{
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        if (sgi_str_eq(name, sgi_str_of(items[i].name)))
            return &items[i];
    for (size_t i = 0; i < sgi_board_file_count; i++)
        if (sgi_str_eq(name, sgi_str_of(sgi_board_files[i].name)))
            return &sgi_board_files[i];
    return NULL;
}

void sgi_board_keep_store(segue_store *store)
{
    if (store)
        sgi_store_ref(store);
}

void sgi_board_drop_store(segue_store *store)
{
    if (store)
        sgi_store_unref(store);
}

sgi_summary_cache *sgi_board_cache_new(const sgi_mem *mem)
{
    return sgi_summary_cache_new(mem);
}

void sgi_board_cache_unref(sgi_summary_cache *cache)
{
    sgi_summary_cache_unref(cache);
}

bool sgi_board_request_init(sgi_board_request *request, const sgi_mem *mem,
                            const sgi_board_item *item, segue_store *store,
                            sgi_summary_cache *cache, sgi_str query, sgi_str body)
{
    *request =
        (sgi_board_request){.item = item, .store = store, .cache = cache, .status = 200};
    sgi_board_keep_store(store);
    sgi_summary_cache_ref(cache);
    sgi_buf_init(&request->query, mem);
    sgi_buf_init(&request->body, mem);
    sgi_buf_init(&request->json, mem);
    sgi_buf_add_str(&request->query, query);
    sgi_buf_add_str(&request->body, body);
    return !request->query.failed && !request->body.failed;
}

static void drop_store(sgi_board_request *request)
{
    sgi_board_drop_store(request->store);
    request->store = NULL;
}

void sgi_board_request_free(sgi_board_request *request)
{
    drop_store(request);
    sgi_summary_cache_unref(request->cache);
    sgi_buf_free(&request->query);
    sgi_buf_free(&request->body);
    sgi_buf_free(&request->json);
}

void sgi_board_answer(sgi_board_request *request)
{
    request->item->answer(request);
    drop_store(request);
    if (request->json.failed)
        request->status = 503;
}
