/* A server on a SQLite file whose disk fails: an error at each call to the disk in turn,
 * while a client follows a task. Afterwards the file has what the client was shown, byte
 * for byte, also after a power cut, and the next task works. Every SEGUE_FAULT_STEP-th
 * call is made to fail. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/power_vfs.h"
#include "support/sqlite_kit.h"

enum { SEGMENTS = 24, TEXT = 3000 };

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    uint64_t seen; /* segments that the current request received */
    segue_status end;
    bool ended;
    bool open;
    uint64_t shown[2]; /* segments that the client received of the first task and of the
                        * second */
    char task_id[2][160];
    int turn;
} stage;

static void fill_text(char *text, uint64_t number)
{
    size_t len = 1 + (size_t)(test_mix(number) % TEXT);
    memset(text, 'a' + (int)(number % 26), len);
    text[len] = 0;
    snprintf(text, len + 1, "%llu.", (unsigned long long)number);
    size_t head = strlen(text);
    if (head < len)
        text[head] = 'x';
}

/* ---- the server ---- */

static void run_story(void *user, segue_call *call)
{
    char text[TEXT + 32];
    segue_status status = SEGUE_OK;
    (void)user;
    for (uint64_t number = 1; number <= SEGMENTS && !status; number++) {
        fill_text(text, number);
        status = segue_call_send_text(call, text, strlen(text), NULL);
    }
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add_story(segue_server *server)
{
    static const char json[] =
        "{\"name\":\"story\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = run_story;
    options.task = SEGUE_TASK_MUST;
    options.flags = SEGUE_TOOL_INCREMENTAL;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &options, NULL),
        SEGUE_OK);
}

/* ---- the client ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    stage *s = user;
    char text[TEXT + 32];
    size_t len = 0;
    (void)request;
    fill_text(text, ++s->seen);
    const char *got = segue_segment_text(segment, &len);
    assert_int_equal(segue_segment_read(segment)->number, s->seen);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(got, text, len);
    s->shown[s->turn] = s->seen;
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    stage *s = user;
    (void)request;
    snprintf(s->task_id[s->turn], sizeof s->task_id[0], "%s", task_id);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    stage *s = user;
    (void)request;
    (void)json;
    (void)len;
    (void)error;
    s->end = status;
    s->ended = true;
}

static void on_open(void *user, segue_session *session)
{
    (void)session;
    ((stage *)user)->open = true;
}

static void turn(stage *s)
{
    assert_int_equal(segue_runtime_dispatch(s->runtime, 1000, 0, NULL), SEGUE_OK);
}

static segue_status tell_story(stage *s)
{
    static const char params[] = "{\"name\":\"story\",\"arguments\":{}}";
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = s;
    events.on_segment = on_segment;
    events.on_task = on_task;
    events.on_complete = on_complete;
    s->seen = 0;
    s->ended = false;
    assert_int_equal(segue_request_start(s->session, "tools/call", params,
                                         sizeof params - 1, NULL, &events, NULL, NULL),
                     SEGUE_OK);
    while (!s->ended)
        turn(s);
    return s->end;
}

/* ---- one play ---- */

static segue_store *open_store(int32_t durability)
{
    segue_store_options options = {.struct_size = sizeof options,
                                   .durability = durability};
    segue_store *store = NULL;
    for (int i = 0; i < 20; i++)
        if (!sgi_store_sqlite_new(test_path("db"), &options, &store, NULL, 0))
            return store;
    fail_msg("it does not open");
    return NULL;
}

static void begin(stage *s, int32_t durability)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *here, *there;
    events.user = s;
    events.on_open = on_open;
    options.store = open_store(durability);
    assert_int_equal(segue_runtime_new(NULL, &s->runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s->runtime, &options, &s->server, NULL), SEGUE_OK);
    sgi_store_unref(options.store);
    add_story(s->server);
    assert_int_equal(segue_transport_pair(s->runtime, &here, &there), SEGUE_OK);
    assert_int_equal(segue_server_attach(s->server, here, NULL), SEGUE_OK);
    assert_int_equal(
        segue_session_open(s->runtime, there, NULL, &events, &s->session, NULL),
        SEGUE_OK);
    while (!s->open)
        turn(s);
}

static void end(stage *s)
{
    segue_session_free(s->session);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
}

typedef struct kept {
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t segments;
} kept;

static int32_t keep_id(void *user, const segue_store_record *record)
{
    memcpy(((kept *)user)->id, record->id, SEGUE_STORE_ID_SIZE);
    return 0;
}

static int32_t check_segment(void *user, const segue_store_entry *entry)
{
    kept *k = user;
    char text[TEXT + 32];
    if (entry->segment != k->segments + 1)
        return 0;
    fill_text(text, ++k->segments);
    assert_non_null(memmem(entry->data, entry->data_len, text, strlen(text)));
    return 0;
}

static void expect_kept(segue_store *store, const stage *s, int turn)
{
    kept k = {.segments = 0};
    if (!s->shown[turn])
        return;
    assert_int_equal(sgi_store_find(store, s->task_id[turn], NULL, keep_id, &k),
                     SEGUE_OK);
    assert_int_equal(sgi_store_read(store, k.id, 0, check_segment, &k), SEGUE_OK);
    assert_true(k.segments >= s->shown[turn]);
}

/* Runs the tasks once with the fault of the plan. Returns false when the run makes fewer
 * calls to the disk than the fault's number. */
static bool play(int32_t durability, power_plan plan, int *failed)
{
    stage s = {.turn = 0};
    power_vfs_clear();
    test_clear_directory();
    power_vfs_plan(plan);
    begin(&s, durability);
    *failed += tell_story(&s) != SEGUE_OK;
    bool happened = power_vfs_happened();
    s.turn = 1;
    if (happened) { /* the fault has happened, so the second task must work */
        assert_int_equal(tell_story(&s), SEGUE_OK);
        assert_int_equal(s.shown[1], SEGMENTS);
    }
    end(&s);
    if (durability == SEGUE_DURABILITY_FULL)
        power_vfs_cut();
    power_vfs_plan((power_plan){.seed = plan.fail_at});
    segue_store *store = open_store(durability);
    expect_kept(store, &s, 0);
    expect_kept(store, &s, 1);
    sgi_store_unref(store);
    return happened;
}

static void each_call_to_the_disk_fails(void **state)
{
    const char *text = getenv("SEGUE_FAULT_STEP");
    uint64_t step = text ? strtoull(text, NULL, 10) : 7, plays = 0;
    int failed = 0;
    (void)state;
    for (int32_t durability = 0; durability < 2; durability++) {
        for (int fault = 0; fault < POWER_FAULTS; fault++) {
            power_plan plan = {.fault = (power_fault)fault,
                               .fail_at = 1 + (uint64_t)fault % step};
            for (; play(durability, plan, &failed); plan.fail_at += step)
                plays++;
        }
    }
    print_message("%llu faults under a server: %d tasks failed, 0 lost, 0 altered\n",
                  (unsigned long long)plays, failed);
    assert_true(plays > 50);
}

int main(void)
{
    const struct CMUnitTest cases[] = {cmocka_unit_test(each_call_to_the_disk_fails)};
    if (test_directory_make())
        return 1;
    power_vfs_install();
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    power_vfs_clear();
    test_directory_remove();
    return failures ? 1 : 0;
}
