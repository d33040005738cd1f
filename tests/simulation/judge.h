/* The judge of a history. It reads what callers and handlers saw, one event a line, and
 * says which promise was broken. It knows nothing of the library: any run that writes
 * these lines can be judged, also a run of real processes.
 *
 *     <ms> op O person=P lasts=0|1 restarts=0|1 numbered=0|1 named=0|1 orphan=0|1
 *          gap=N                  a call is about to start; named: it becomes a task;
 *                                 orphan: if it is cancelled before a caller is told its
 *                                 task, the task may run on (R-2557-11);
 *                                 gap: the server does not show segment N; 0 = none
 *     <ms> run O R from=N         run R of the handler begins behind segment N
 *     <ms> emit O R n=N d=D       the handler gives segment N with digest D
 *     <ms> void O R               all segments and fields before are replaced
 *     <ms> field O R f=NAME d=D   a field of the result gets a value
 *     <ms> end O R kind=ok|error|fail|none                       the handler has ended
 *     <ms> told O R               the handler learns that its operation is over
 *     <ms> log O R n=N level=L    the handler gives log message N, of level L
 *     <ms> left O R               the handler gives up, because its server ends
 *     <ms> ask O R q=Q            the handler asks a question
 *     <ms> answered O R q=Q by=P  the handler got an answer, which was meant for Q
 *     <ms> see C O n=N d=D k=K    caller C is shown segment N with digest D; K: its
 *                                 number on the wire, 0 = it has none
 *     <ms> drop C O               the segments that C was shown before are replaced
 *     <ms> keep C O               C stores its token
 *     <ms> back C O at=P          C goes on from the token that it stored last
 *     <ms> anew C O from=N at=P   C starts, behind segment N if it has a token of
 *                                 another; P is its process
 *     <ms> limit C O ms=T wire=T grace=T
 *                                 from here on C has the time limit ms (0 = none), and
 *                                 each of its messages the limit wire; when its limit is
 *                                 over, C ends within the time grace
 *     <ms> wants C O level=L asks=0|1 shared=0|1 repeats=0|1
 *                                 C wants log messages from level L on; asks: it asks its
 *                                 server for them; shared: all calls of its process get
 *                                 their messages on one stream; repeats: messages may
 *                                 come again after a fault
 *     <ms> heard C O of=O r=R n=N level=L
 *                                 C gets log message N of run R of an operation
 *     <ms> asked C O q=Q by=P     a person is asked
 *     <ms> status C O s=STATUS
 *     <ms> task C O               C is told that its call is a task
 *     <ms> cancel C O
 *     <ms> withdrawn C O          C is told that the call was cancelled
 *     <ms> lasts C O              C learns that the call outlives its connection
 *     <ms> had C O                C, which has died, was sent the end of the call if the
 *                                 call has ended: the call outlives nothing any more
 *     <ms> result C O kind=K content=D fields=D shown=0|1    K as in `end`
 *     <ms> result C O kind=failed code=NAME                  anything else
 *     <ms> gone C                 caller C dies
 *     <ms> fault NAME             something goes wrong: cut, death (of a caller),
 *                                 kill, stop or pause (of a server), loss or full (of a
 *                                 store), store (it cannot be reached for a while)
 *     <ms> start P most=N         client P starts its server; N: the most starts within
 *                                 10 s, 0 = any number
 *     <ms> change v=N             the watched resource gets version N
 *     <ms> knows P v=N            client P has read version N
 *     <ms> calm                   nothing goes wrong from here on
 *     <ms> pace ms=T limit=N      from here on a process may send N messages for each of
 *                                 its open calls in T ms in which none of them has news
 *     <ms> sent P n=N             process P sends N messages
 *     <ms> hush P level=L kept=0|1
 *                                 process P has asked for log messages from level L on; 1
 *                                 = each server knows that from its first message on
 *     <ms> size WHAT bytes=N limit=N
 *     <ms> over                   the end of the history
 *
 * content is the digest of the digests of the segments of the result, in order; 0 = the
 * result has no content. fields is the same for the names and digests of its fields. */
#ifndef JUDGE_H
#define JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct judge judge;

judge *judge_new(void);
void judge_free(judge *j);
/* The time within which everything has to end after `calm`; 30 minutes at first. */
void judge_set_bound(judge *j, int64_t ms);
/* Reads one line, without its newline. Returns NULL, or what is wrong. The text lives as
 * long as the judge. */
const char *judge_line(judge *j, const char *line);

#define JUDGE_DIGEST 14695981039346656037u
uint64_t judge_digest(uint64_t so_far, const void *bytes, size_t len);

#endif
