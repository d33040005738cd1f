/* The tools of the servers under load. They run on the dispatch thread, except the thread
 * of tick.
 *
 *   echo    answers at once with its argument `text`
 *   work    the same, after `us` microseconds of computing
 *   report  answers at once, after `n` reports of progress
 *   stream  a task: `n` text segments of `bytes` bytes, as fast as they are taken
 *   tick    a task that never ends: a segment every `us` microseconds, from a thread. The
 *           text has the number of the process. It goes on when the server was killed
 *   park    a task that never ends and sends nothing; its call is never freed */
#ifndef BENCH_TOOLS_H
#define BENCH_TOOLS_H

#include <segue/segue.h>

void bench_tools_add(segue_runtime *runtime, segue_server *server);

/* For further tools of a server: user is passed to on_call. */
void bench_tools_add_one(segue_server *server, const char *name, segue_call_fn run,
                         int32_t task, void *user);
/* Completes the call with a text and frees it. */
void bench_tools_answer(segue_runtime *runtime, segue_call *call, const char *text,
                        size_t len);

/* No limit may slow a load down. */
#define BENCH_ROOM ((int64_t)4 << 30)
void bench_tools_set_limits(segue_server_options *options);

#endif
