/* A requestState holds each question as a member "<key>":{"q":"<digest>","a":<answer>}.
 * The text of a question is not stored, because the tool asks the question again. Keys
 * and digests have no characters that need escapes. */
#include "engine/server/carried_answers.h"

#include "engine/server/request_state.h"

struct sgi_carried_answers {
    STAILQ_HEAD(, sgi_carried_answer) list;
};

static void free_recalled(const sgi_mem *mem, sgi_carried_answer *carried_answer)
{
    sgi_text_free(mem, carried_answer->key);
    if (carried_answer->answer)
        sgi_free(mem, carried_answer->answer, carried_answer->answer_len + 1);
    sgi_free(mem, carried_answer, sizeof *carried_answer);
}

void sgi_carried_answers_free(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    struct sgi_carried_answers *carried = op->served->carried;
    sgi_carried_answer *carried_answer;
    if (!carried)
        return;
    while ((carried_answer = STAILQ_FIRST(&carried->list))) {
        STAILQ_REMOVE_HEAD(&carried->list, link);
        free_recalled(mem, carried_answer);
    }
    sgi_free(mem, carried, sizeof *carried);
    op->served->carried = NULL;
}

static bool digest_question(const sgi_op *op, const char *method, sgi_json params,
                            uint8_t out[SGI_CARRIED_ANSWERS_DIGEST])
{
    uint8_t digest[SGI_DIGEST_SIZE];
    const sgi_str parts[] = {sgi_str_of(method), params};
    if (!sgi_engine_digest(op->engine, digest, parts, 2))
        return false;
    memcpy(out, digest, SGI_CARRIED_ANSWERS_DIGEST);
    return true;
}

/* ---- writing a requestState ---- */

static void write_one(sgi_jw *w, const char *key,
                      const uint8_t question[SGI_CARRIED_ANSWERS_DIGEST], sgi_json answer)
{
    sgi_jw_key(w, key);
    sgi_jw_open(w, '{');
    sgi_jw_key(w, "q");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, question, SGI_CARRIED_ANSWERS_DIGEST, true);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
    if (answer.n)
        sgi_jw_member_raw(w, "a", answer);
    sgi_jw_close(w, '}');
}

void sgi_carried_answers_write(const sgi_op *op, sgi_buf *out)
{
    const sgi_op_question *input;
    const sgi_carried_answer *carried_answer;
    uint8_t question[SGI_CARRIED_ANSWERS_DIGEST];
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        sgi_json params = {input->params, input->params_len};
        bool tells = input->answer && !input->failed;
        if (!digest_question(op, input->method, params, question))
            out->failed = true;
        else
            write_one(&w, input->key, question,
                      tells ? (sgi_json){input->answer, input->answer_len}
                            : (sgi_json){0});
    }
    /* also writes the questions of the earlier run that the tool has not asked again
     * yet */
    if (op->served->carried)
        STAILQ_FOREACH(carried_answer, &op->served->carried->list, link)
            if (!carried_answer->is_early &&
                !sgi_op_find_question((sgi_op *)op, sgi_str_of(carried_answer->key)))
                write_one(&w, carried_answer->key, carried_answer->question,
                          (sgi_json){carried_answer->answer, carried_answer->answer_len});
    sgi_jw_close(&w, '}');
}

/* ---- reading what a request brings ---- */

static sgi_json answer_of(const sgi_json_member *member, sgi_json responses)
{
    sgi_json_member response;
    sgi_json answer = sgi_json_get(member->value, "a");
    for (size_t at = 0;
         !answer.n && responses.n && sgi_json_next_member(responses, &at, &response);)
        if (sgi_str_eq(response.key, member->key))
            answer = response.value;
    return answer;
}

static sgi_carried_answer *new_recalled(sgi_op *op, sgi_str key, sgi_json answer)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_carried_answer *carried_answer = sgi_zalloc(mem, sizeof *carried_answer);
    if (!carried_answer)
        return NULL;
    carried_answer->key = sgi_text_dup(mem, key);
    carried_answer->answer = answer.n ? sgi_text_dup(mem, answer) : NULL;
    carried_answer->answer_len = answer.n;
    if (carried_answer->key && (carried_answer->answer || !answer.n)) {
        STAILQ_INSERT_TAIL(&op->served->carried->list, carried_answer, link);
        return carried_answer;
    }
    free_recalled(mem, carried_answer);
    return NULL;
}

static bool read_question(const sgi_op *op, sgi_json text,
                          uint8_t question[SGI_CARRIED_ANSWERS_DIGEST])
{
    sgi_buf digest;
    sgi_str base64 = {0};
    sgi_buf_init(&digest, sgi_engine_mem(op->engine));
    sgi_json_plain_string(text, &base64);
    bool ok =
        sgi_buf_add_unbase64(&digest, base64) && digest.len == SGI_CARRIED_ANSWERS_DIGEST;
    if (ok)
        memcpy(question, digest.p, SGI_CARRIED_ANSWERS_DIGEST);
    sgi_buf_free(&digest);
    return ok;
}

static bool take_all(sgi_op *op, sgi_json carried, sgi_json responses)
{
    sgi_json_member member;
    uint8_t question[SGI_CARRIED_ANSWERS_DIGEST];
    for (size_t at = 0; sgi_json_next_member(carried, &at, &member);) {
        if (!read_question(op, sgi_json_get(member.value, "q"), question))
            return false;
        sgi_carried_answer *carried_answer =
            new_recalled(op, member.key, answer_of(&member, responses));
        if (!carried_answer)
            return false;
        memcpy(carried_answer->question, question, sizeof question);
    }
    return true;
}

/* Stores the answers that arrived without a requestState, for questions that the tool may
 * ask later. At most max_inputs answers are stored, because a tool cannot ask more
 * questions. An answer whose key has escapes is ignored, because no tool uses such a
 * key. */
static bool take_early(sgi_op *op, sgi_json responses)
{
    sgi_json_member member;
    int32_t count = 0;
    for (size_t at = 0; sgi_json_next_member(responses, &at, &member);) {
        if (member.escaped || member.key.n > SGI_INPUT_KEY_MAX)
            continue;
        if (count++ == op->committer->limits.max_inputs)
            break;
        sgi_carried_answer *carried_answer = new_recalled(op, member.key, member.value);
        if (!carried_answer)
            return false;
        carried_answer->is_early = true;
    }
    return true;
}

static bool begin(sgi_op *op)
{
    sgi_carried_answers_free(op);
    op->served->carried =
        sgi_zalloc(sgi_engine_mem(op->engine), sizeof *op->served->carried);
    if (op->served->carried)
        STAILQ_INIT(&op->served->carried->list);
    return op->served->carried != NULL;
}

static bool take_state(sgi_op *op, const sgi_inbound *in)
{
    sgi_request_state state;
    if (sgi_request_state_open(in, op->served->kind, sgi_str_of(op->served->item_name),
                               &state) != SEGUE_OK)
        /* only a lack of memory can cause this failure, because the same requestState was
         * opened successfully before */
        return false;
    bool ok =
        !state.carried.n || (begin(op) && take_all(op, state.carried, in->responses));
    sgi_request_state_free(&state);
    return ok;
}

bool sgi_carried_answers_read(sgi_op *op, const sgi_inbound *in)
{
    if (!sgi_facts(in->version)->has_rounds)
        return true;
    if (in->state.n)
        return take_state(op, in);
    if (sgi_json_kind_of(in->responses) != SGI_JSON_OBJECT)
        return true;
    return begin(op) && take_early(op, in->responses);
}

/* ---- finding a question ---- */

static const sgi_carried_answer *find(const sgi_op *op, const char *key,
                                      const char *method, sgi_json params, bool unasked)
{
    uint8_t question[SGI_CARRIED_ANSWERS_DIGEST];
    const sgi_carried_answer *carried_answer;
    if (!op->served->carried || !digest_question(op, method, params, question))
        return NULL;
    STAILQ_FOREACH(carried_answer, &op->served->carried->list, link)
        if ((key ? !strcmp(carried_answer->key, key) : !carried_answer->is_early) &&
            (carried_answer->is_early ||
             !memcmp(carried_answer->question, question, sizeof question)) &&
            !(unasked &&
              sgi_op_find_question((sgi_op *)op, sgi_str_of(carried_answer->key))))
            return carried_answer;
    return NULL;
}

const sgi_carried_answer *sgi_carried_answers_find(const sgi_op *op, const char *key,
                                                   const char *method, sgi_json params)
{
    return find(op, key, method, params, true);
}

sgi_json sgi_carried_answers_get(const sgi_op *op, const char *key, const char *method,
                                 sgi_json params)
{
    const sgi_carried_answer *carried_answer = find(op, key, method, params, false);
    return carried_answer && carried_answer->answer
               ? (sgi_json){carried_answer->answer, carried_answer->answer_len}
               : (sgi_json){0};
}

bool sgi_carried_answers_has_key(const sgi_op *op, const char *key)
{
    const sgi_carried_answer *carried_answer;
    if (op->served->carried)
        STAILQ_FOREACH(carried_answer, &op->served->carried->list, link)
            if (!carried_answer->is_early && !strcmp(carried_answer->key, key))
                return true;
    return false;
}
