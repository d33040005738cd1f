/* In a state each question stands as "<key>":{"q":"<digest>","a":<answer>}: the question
 * itself is not needed, the tool asks it again. Keys and digests need no escapes. */
#include "engine/serving/recall.h"

#include "engine/serving/request_state.h"

struct sgi_recall {
    STAILQ_HEAD(, sgi_recalled) list;
};

static void free_recalled(const sgi_mem *mem, sgi_recalled *recalled)
{
    sgi_text_free(mem, recalled->key);
    if (recalled->answer)
        sgi_release(mem, recalled->answer, recalled->answer_len + 1);
    sgi_release(mem, recalled, sizeof *recalled);
}

void sgi_recall_free(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    struct sgi_recall *recall = op->recall;
    sgi_recalled *recalled;
    if (!recall)
        return;
    while ((recalled = STAILQ_FIRST(&recall->list))) {
        STAILQ_REMOVE_HEAD(&recall->list, link);
        free_recalled(mem, recalled);
    }
    sgi_release(mem, recall, sizeof *recall);
    op->recall = NULL;
}

static bool digest_question(const sgi_op *op, const char *method, sgi_json params,
                            uint8_t out[SGI_RECALL_DIGEST])
{
    uint8_t digest[SGI_DIGEST_SIZE];
    const sgi_str parts[] = {sgi_str_of(method), params};
    if (!sgi_engine_digest(op->engine, digest, parts, 2))
        return false;
    memcpy(out, digest, SGI_RECALL_DIGEST);
    return true;
}

/* ---- writing ---- */

static void write_one(sgi_jw *w, const char *key,
                      const uint8_t question[SGI_RECALL_DIGEST], sgi_json answer)
{
    sgi_jw_key(w, key);
    sgi_jw_open(w, '{');
    sgi_jw_key(w, "q");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, question, SGI_RECALL_DIGEST, true);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
    if (answer.n)
        sgi_jw_member_raw(w, "a", answer);
    sgi_jw_close(w, '}');
}

void sgi_recall_write(const sgi_op *op, sgi_buf *out)
{
    const sgi_input *input;
    const sgi_recalled *recalled;
    uint8_t question[SGI_RECALL_DIGEST];
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    TAILQ_FOREACH(input, &op->inputs, link) {
        sgi_json params = {input->params, input->params_len};
        bool tells = input->answer && !input->failed;
        if (!digest_question(op, input->method, params, question))
            out->failed = true;
        else
            write_one(&w, input->key, question,
                      tells ? (sgi_json){input->answer, input->answer_len}
                            : (sgi_json){0});
    }
    /* and what its tool has not asked again yet */
    if (op->recall)
        STAILQ_FOREACH(recalled, &op->recall->list, link)
            if (!recalled->is_early &&
                !sgi_op_input((sgi_op *)op, sgi_str_of(recalled->key)))
                write_one(&w, recalled->key, recalled->question,
                          (sgi_json){recalled->answer, recalled->answer_len});
    sgi_jw_close(&w, '}');
}

/* ---- taking ---- */

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

static sgi_recalled *new_recalled(sgi_op *op, sgi_str key, sgi_json answer)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_recalled *recalled = sgi_zalloc(mem, sizeof *recalled);
    if (!recalled)
        return NULL;
    recalled->key = sgi_text_dup(mem, key);
    recalled->answer = answer.n ? sgi_text_dup(mem, answer) : NULL;
    recalled->answer_len = answer.n;
    if (recalled->key && (recalled->answer || !answer.n)) {
        STAILQ_INSERT_TAIL(&op->recall->list, recalled, link);
        return recalled;
    }
    free_recalled(mem, recalled);
    return NULL;
}

static bool read_question(const sgi_op *op, sgi_json text,
                          uint8_t question[SGI_RECALL_DIGEST])
{
    sgi_buf digest;
    sgi_str base64 = {0};
    sgi_buf_init(&digest, sgi_engine_mem(op->engine));
    sgi_json_plain_string(text, &base64);
    bool ok = sgi_buf_add_unbase64(&digest, base64) && digest.len == SGI_RECALL_DIGEST;
    if (ok)
        memcpy(question, digest.p, SGI_RECALL_DIGEST);
    sgi_buf_free(&digest);
    return ok;
}

static bool take_all(sgi_op *op, sgi_json recall, sgi_json responses)
{
    sgi_json_member member;
    uint8_t question[SGI_RECALL_DIGEST];
    for (size_t at = 0; sgi_json_next_member(recall, &at, &member);) {
        if (!read_question(op, sgi_json_get(member.value, "q"), question))
            return false;
        sgi_recalled *recalled =
            new_recalled(op, member.key, answer_of(&member, responses));
        if (!recalled)
            return false;
        memcpy(recalled->question, question, sizeof question);
    }
    return true;
}

/* No more than the tool may ask; a key with escapes is none of its. */
static bool take_early(sgi_op *op, sgi_json responses)
{
    sgi_json_member member;
    int32_t count = 0;
    for (size_t at = 0; sgi_json_next_member(responses, &at, &member);) {
        if (member.escaped || member.key.n > SGI_INPUT_KEY_MAX)
            continue;
        if (count++ == op->limits.max_inputs)
            break;
        sgi_recalled *recalled = new_recalled(op, member.key, member.value);
        if (!recalled)
            return false;
        recalled->is_early = true;
    }
    return true;
}

static bool begin(sgi_op *op)
{
    sgi_recall_free(op);
    op->recall = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *op->recall);
    if (op->recall)
        STAILQ_INIT(&op->recall->list);
    return op->recall != NULL;
}

static bool take_state(sgi_op *op, const sgi_inbound *in)
{
    sgi_request_state state;
    if (sgi_request_state_open(in, op->kind, sgi_str_of(op->item_name), &state) !=
        SEGUE_OK)
        return false; /* it was opened before */
    bool ok = !state.recall.n || (begin(op) && take_all(op, state.recall, in->responses));
    sgi_request_state_free(&state);
    return ok;
}

bool sgi_recall_take(sgi_op *op, const sgi_inbound *in)
{
    if (!sgi_version_has_rounds(in->version))
        return true;
    if (in->state.n)
        return take_state(op, in);
    if (sgi_json_kind_of(in->responses) != SGI_JSON_OBJECT)
        return true;
    return begin(op) && take_early(op, in->responses);
}

/* ---- finding ---- */

static const sgi_recalled *find(const sgi_op *op, const char *key, const char *method,
                                sgi_json params, bool unasked)
{
    uint8_t question[SGI_RECALL_DIGEST];
    const sgi_recalled *recalled;
    if (!op->recall || !digest_question(op, method, params, question))
        return NULL;
    STAILQ_FOREACH(recalled, &op->recall->list, link)
        if ((key ? !strcmp(recalled->key, key) : !recalled->is_early) &&
            (recalled->is_early ||
             !memcmp(recalled->question, question, sizeof question)) &&
            !(unasked && sgi_op_input((sgi_op *)op, sgi_str_of(recalled->key))))
            return recalled;
    return NULL;
}

const sgi_recalled *sgi_recall_find(const sgi_op *op, const char *key, const char *method,
                                    sgi_json params)
{
    return find(op, key, method, params, true);
}

sgi_json sgi_recall_answer(const sgi_op *op, const char *key, const char *method,
                           sgi_json params)
{
    const sgi_recalled *recalled = find(op, key, method, params, false);
    return recalled && recalled->answer
               ? (sgi_json){recalled->answer, recalled->answer_len}
               : (sgi_json){0};
}

bool sgi_recall_has_key(const sgi_op *op, const char *key)
{
    const sgi_recalled *recalled;
    if (op->recall)
        STAILQ_FOREACH(recalled, &op->recall->list, link)
            if (!recalled->is_early && !strcmp(recalled->key, key))
                return true;
    return false;
}
