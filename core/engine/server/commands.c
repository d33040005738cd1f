/* The owner of an operation runs a forwarded command like a request of one of its own
 * clients. A command that runs twice has the same effect as a command that runs once. */
#include "engine/server/commands.h"

#include "engine/server/dialects.h"
#include "engine/server/mailbox.h"
#include "engine/server/lasting.h"
#include "engine/server/rounds.h"
#include "engine/server/inputs.h"
#include "engine/server/task.h"

/* Returns how the dialect of the operation answers a request to cancel. Without a dialect
 * of tasks, the answer is SGI_CANCEL_STATE. */
static sgi_cancel_form cancel_form(const sgi_op *op)
{
    return op->served->dialect ? op->served->dialect->cancel : SGI_CANCEL_STATE;
}

/* Runs a forwarded request to cancel. If the operation cannot be stopped, the request has
 * no effect. Only in a dialect that answers with the outcome of the cancel, the operation
 * ends even then. */
static segue_status read_cancel(sgi_op *op)
{
    if (sgi_task_is_unstoppable(op) && cancel_form(op) != SGI_CANCEL_OUTCOME)
        return SEGUE_OK;
    sgi_task_cancel(op);
    return sgi_op_has_ended(op) ? SEGUE_OK : SEGUE_E_NOMEM;
}

static segue_status read_answer(sgi_op *op, sgi_json answer)
{
    sgi_str key;
    sgi_json error = sgi_json_get(answer, "error");
    if (!sgi_json_plain_string(sgi_json_get(answer, "key"), &key))
        return SEGUE_OK;
    segue_status status =
        error.n ? sgi_task_take_error_answer(op, key, error)
                : sgi_task_take_answer(op, key, sgi_json_get(answer, "response"));
    sgi_round_on_answer_without_state(op);
    return status;
}

/* True when this server wrote the command itself, earlier, while another server owned the
 * operation. by: the member of the command that identifies the server that wrote it. */
static bool is_ours(const segue_server *server, sgi_json by)
{
    sgi_str text;
    sgi_buf mark;
    sgi_buf_init(&mark, sgi_engine_mem(server->engine));
    bool ours = sgi_json_plain_string(by, &text) && sgi_buf_add_unbase64(&mark, text) &&
                mark.len == sizeof server->cluster.mark &&
                !memcmp(mark.p, server->cluster.mark, sizeof server->cluster.mark);
    sgi_buf_free(&mark);
    return ours;
}

/* Reads whether the client of a lasting call is connected to another server. Earlier
 * versions of the library write no position; such a report counts as the newest. */
static void read_presence(sgi_op *op, sgi_json command)
{
    sgi_lasting_call *lasting = op->served->lasting;
    int64_t away = 0, at = INT64_MAX;
    sgi_json_read_int(sgi_json_get(command, "at"), &at);
    if (!lasting || !sgi_json_read_int(sgi_json_get(command, "away"), &away) || at < 0 ||
        is_ours(sgi_op_server(op), sgi_json_get(command, "by")))
        return;
    lasting->form->elsewhere(lasting, away != 0, (uint64_t)at);
    if (away)
        sgi_lasting_call_offer_channel_soon(lasting);
}

segue_status sgi_forwarded_command_run(sgi_op *op, sgi_str command)
{
    sgi_json value;
    if (sgi_op_is_mailbox(op))
        return sgi_mailbox_take_answer(sgi_op_server(op), command);
    segue_status status =
        sgi_engine_check_json(op->engine, command.p, command.n, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    sgi_json answer = sgi_json_get(value, "answer");
    if (sgi_json_get(value, "cancel").n)
        return read_cancel(op);
    if (answer.n)
        return read_answer(op, answer);
    read_presence(op, value);
    return SEGUE_OK;
}

bool sgi_command_is_answered_when_durable(const sgi_op *op)
{
    return cancel_form(op) == SGI_CANCEL_ACKNOWLEDGED;
}
