/* The rows of all dialects, for the files of this folder. The letters are those of
 * core/docs/glossary.md. Server and client know the rows by their tables alone
 * (servers.c, clients.c). */
#ifndef SGI_ROWS_H
#define SGI_ROWS_H

typedef struct sgi_srv_dialect sgi_srv_dialect;
typedef struct sgi_cli_dialect sgi_cli_dialect;

/* ---- the server's side ---- */

/* L: tasks of 2025-11-25 (SEP-1686), and S: their streaming (SEP-1905) */
extern const sgi_srv_dialect sgi_srv_tasks_2025;
extern const sgi_srv_dialect sgi_srv_tasks_draft; /* D: tasks of the draft SEP-2557 */
/* X: tasks of the extension SEP-2663 */
extern const sgi_srv_dialect sgi_srv_tasks_ext;
/* E: event streams of tasks, SEP-2694 */
extern const sgi_srv_dialect sgi_srv_task_events;
/* P: partial results by further responses, PR 776 */
extern const sgi_srv_dialect sgi_srv_partial;
/* PN: partial results by notifications, SEP-2998 */
extern const sgi_srv_dialect sgi_srv_partial_result;
extern const sgi_srv_dialect sgi_srv_resumable; /* Z: resumable requests, SEP-975 */

/* ---- the client's side ---- */

/* The functions that all dialects of tasks share. They follow a task by its state. */
extern const sgi_cli_dialect sgi_cli_tasks;
/* L and S: tasks of 2025-11-25 (L), with streaming of their results (S, SEP-1905) */
extern const sgi_cli_dialect sgi_cli_tasks_2025;
extern const sgi_cli_dialect sgi_cli_tasks_draft; /* D: tasks of the draft SEP-2557 */
/* X: tasks of the extension SEP-2663 */
extern const sgi_cli_dialect sgi_cli_tasks_ext;
/* E: event streams of tasks, SEP-2694 */
extern const sgi_cli_dialect sgi_cli_task_events;
/* P: partial results by further responses, PR 776 */
extern const sgi_cli_dialect sgi_cli_partial;
/* PN: partial results by notifications, SEP-2998 */
extern const sgi_cli_dialect sgi_cli_partial_result;
extern const sgi_cli_dialect sgi_cli_resumable; /* Z: resumable requests, SEP-975 */

#endif
