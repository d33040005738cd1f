#include "engine/log/op.h"

bool sgi_op_question_is_open(const sgi_op *op, const sgi_op_question *input)
{
    uint64_t horizon = sgi_op_horizon(op);
    return input->asked <= horizon && !(input->answered && input->answered <= horizon);
}

bool sgi_op_question_can_be_answered(const sgi_op *op, const sgi_op_question *input)
{
    bool is_reverted = input->asked == UINT64_MAX;
    return !is_reverted && !input->answered && !sgi_op_has_ended(op);
}

sgi_op_question *sgi_op_find_question(sgi_op *op, sgi_str key)
{
    sgi_op_question *input, *reverted = NULL;
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        if (!sgi_str_eq(sgi_str_of(input->key), key))
            continue;
        if (input->asked != UINT64_MAX)
            return input;
        /* this server lost the operation before this question was durable, and the new
         * owner may have asked the question again under the same key */
        reverted = input;
    }
    return reverted;
}

sgi_op_question *sgi_op_find_question_at(const sgi_op *op, uint64_t position)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->asked == position)
            return input;
    return NULL;
}
