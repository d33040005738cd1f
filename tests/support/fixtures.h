/* The tools that tests and examples of the protocol need: the tools of the public
 * conformance suite, under its names, and some tools of Segue. All tools use the public
 * API only. The same code serves the in-process world of the scenarios and the fixture
 * server that is spawned over stdio.
 *
 * Tools that take time are jobs with a due time. The owner of the loop calls
 * fixtures_tick. */
#ifndef FIXTURES_H
#define FIXTURES_H

#include <segue/segue.h>

typedef struct fixtures fixtures;

/* now_ms is called only inside fixtures_tick and the handlers. */
fixtures *fixtures_new(int64_t (*now_ms)(void *user), void *user);
void fixtures_free(fixtures *f);

/* Adds all tools, resources and prompts (item_fixtures.h). f must outlive the server. */
segue_status fixtures_add(fixtures *f, segue_runtime *runtime, segue_server *server);

/* Runs the jobs that are due. Returns the milliseconds until the next job, or -1 without
 * a job. */
int64_t fixtures_tick(fixtures *f);

/* Returns how often the handler of a tool has run. */
int fixtures_runs(const fixtures *f, const char *tool);
/* Returns how many jobs have not ended. */
int fixtures_jobs(const fixtures *f);
/* Writes the text of segment n (1, 2, ...) of the tool story. */
size_t fixtures_story_line(int64_t n, int64_t chunk, char *buf, size_t size);

#endif
