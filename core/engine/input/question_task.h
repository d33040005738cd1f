/* A question that is asked as a task, as the server uses it (2025-11-25
 * basic/utilities/tasks: the server is the requestor). A question task is the object that
 * asks one such question. engine/reverse makes question tasks. The server calls a
 * question task only through this table of functions, which the engine has
 * (sgi_engine.question_tasks). A question task belongs to its question (sgi_op_question),
 * and can outlive the wire session in which it was made. When the wire session ends,
 * `cut` disconnects the question task. Later `join` connects it to another wire session,
 * where its task continues. */
#ifndef SGI_QUESTION_TASK_H
#define SGI_QUESTION_TASK_H

#include "engine/conversation/conn.h"
#include "engine/input/question_id.h"

typedef struct sgi_question_task sgi_question_task;
typedef struct sgi_op sgi_op;
typedef struct sgi_op_question sgi_op_question;

/* The ways in which a question task can end. */
typedef enum sgi_question_task_end {
    /* the question task has ended with an answer; json: the result */
    SGI_QUESTION_TASK_ANSWER = 0,
    /* the question task has ended with an error; json: the error object, or empty when
     * out of memory */
    SGI_QUESTION_TASK_ERROR,
    /* the client does not know the task any more, so the question is asked again */
    SGI_QUESTION_TASK_AGAIN
} sgi_question_task_end;

/* The functions by which a question task reports to the server. Both functions are called
 * under the lock. */
typedef struct sgi_question_task_events {
    /* Called when the question task has messages to send (sgi_question_task_send). */
    void (*has_output)(sgi_op *op);
    /* Called once, from the ready queue, when the question task has ended. */
    void (*ended)(sgi_op *op, sgi_op_question *input, sgi_question_task_end how,
                  sgi_json json);
} sgi_question_task_events;

/* The functions of a question task. All functions are called under the lock. */
typedef struct sgi_question_task_ops {
    /* Makes a question task and the request that asks its question. params: the params of
     * the question, including the member `task`. Returns NULL when out of memory. */
    sgi_question_task *(*make)(sgi_op *op, sgi_op_question *input, sgi_json params,
                               const sgi_question_task_events *events);
    void (*free)(sgi_question_task *question_task);
    /* Connects the question task to a client. question: the id with which the ids of all
     * later messages begin. modes: the response modes (SEP-1905) that the client has
     * declared. */
    void (*join)(sgi_question_task *question_task, const sgi_question_id_text *question,
                 uint8_t modes);
    /* Disconnects the question task from its client, because the client has gone. */
    void (*cut)(sgi_question_task *question_task);
    /* True when the question task sends no more messages: `ended` was called, or will be
     * called from the ready queue. */
    bool (*is_over)(const sgi_question_task *question_task);
    bool (*has_output)(const sgi_question_task *question_task);
    /* Moves the messages of the question task to the output of this conversation. */
    void (*move_output)(sgi_question_task *question_task, sgi_conn *conn);
    /* True when the question task waits for a response with this id. */
    bool (*waits)(const sgi_question_task *question_task, sgi_json id);
    void (*take_message)(sgi_question_task *question_task, const sgi_message *msg);
    /* Returns the number in the id of the request that asks the question; 0 = that
     * request was answered. */
    int64_t (*number)(const sgi_question_task *question_task);
    /* Asks the client to cancel its task. Does nothing when the client has made no task.
     * The client's answer is ignored. */
    void (*cancel_task)(sgi_question_task *question_task);
} sgi_question_task_ops;

/* The first member of the struct of every question task. */
struct sgi_question_task {
    const sgi_question_task_ops *table;
};

static inline sgi_question_task *
sgi_question_task_new(sgi_engine *engine, sgi_op *op, sgi_op_question *input,
                      sgi_json params, const sgi_question_task_events *events)
{
    return engine->question_tasks->make(op, input, params, events);
}

static inline void sgi_question_task_free(sgi_question_task *question_task)
{
    question_task->table->free(question_task);
}

static inline void sgi_question_task_connect(sgi_question_task *question_task,
                                             const sgi_question_id_text *question,
                                             uint8_t modes)
{
    question_task->table->join(question_task, question, modes);
}

static inline void sgi_question_task_disconnect(sgi_question_task *question_task)
{
    question_task->table->cut(question_task);
}

static inline bool sgi_question_task_is_over(const sgi_question_task *question_task)
{
    return question_task->table->is_over(question_task);
}

static inline bool sgi_question_task_has_output(const sgi_question_task *question_task)
{
    return question_task->table->has_output(question_task);
}

static inline void sgi_question_task_send(sgi_question_task *question_task,
                                          sgi_conn *conn)
{
    question_task->table->move_output(question_task, conn);
}

static inline bool sgi_question_task_awaits(const sgi_question_task *question_task,
                                            sgi_json id)
{
    return question_task->table->waits(question_task, id);
}

static inline void sgi_question_task_take_message(sgi_question_task *question_task,
                                                  const sgi_message *msg)
{
    question_task->table->take_message(question_task, msg);
}

static inline int64_t sgi_question_task_number(const sgi_question_task *question_task)
{
    return question_task->table->number(question_task);
}

static inline void sgi_question_task_cancel(sgi_question_task *question_task)
{
    question_task->table->cancel_task(question_task);
}

#endif
