/* The work for texts that go on by notification is proportional to their size (R-776-30).
 * Debug builds count the work (linear_work.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "support/client_kit.h"
#include "support/linear_work.h"
#include "support/world.h"

#ifdef SGI_COUNT_WORK

/* Writes the content of piece number i: the first piece is a text of 10 n bytes. */
static void write_content(text *t, int i, int n)
{
    text_add(t, "\"content\":[{\"type\":\"text\",\"text\":\"");
    for (int k = 0; k < (i ? 1 : n); k++)
        text_add(t, "0123456789");
    text_add(t, "\",\"annotations\":{}}]");
}

static void texts_by_notification(kit *k, int n)
{
    record *r = kit_call(k, "t");
    const char *call = kit_expect(k, "tools/call");
    const char *token = json_at(call, "params._meta.partialResultToken");
    for (int i = 0; i < n; i++) {
        text t = {0};
        write_content(&t, i, n);
        kit_say(k,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/partial_result\","
                "\"params\":{\"partialResultToken\":%s,\"seq\":%d,%s,"
                "\"_meta\":{\"dev.segue/index\":0}}}",
                token, i, t.p);
        free(t.p);
    }
    kit_run(k);
    assert_int_equal(r->segments, n);
    segue_request_cancel(r->request);
    kit_run(k);
}

static uint64_t client_work(int n)
{
    kit k = {.quiet = 1};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    uint64_t before = sgi_work;
    texts_by_notification(&k, n);
    uint64_t work = sgi_work - before;
    kit_end(&k);
    return work;
}

static void a_client_is_linear(void **state)
{
    (void)state;
    expect_linear("texts by notification", client_work(LINEAR_FIRST),
                  client_work(2 * LINEAR_FIRST), client_work(4 * LINEAR_FIRST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-776-30 a client is linear", a_client_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("this build does not count work: a debug build does");
    return 0;
}

#endif
