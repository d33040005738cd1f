/* Passes the segments of an upstream on to the client's call (segments.h).
 *
 * The request to the upstream has a credit of one segment. The relay grants the next one
 * when the log of the call has taken the segment. While the log has no room, the library
 * receives nothing more than it can store, so a slow client slows the upstream down.
 *
 * A segment of the upstream becomes exactly one segment of the call. After a crash, the
 * number of segments in the log and the last checkpoint therefore give the number of the
 * upstream's next segment. A checkpoint is needed only where this rule changes: when
 * segments that begin a block are followed by segments that continue a block, or the
 * other way round, and when earlier segments become void. The checkpoint is renewed from
 * time to time, so that the upstream need not send many segments again.
 *
 * A call without a token is repeated by its key, and the upstream sends the segments from
 * the first one again. An upstream that has forgotten the key runs the call a second
 * time, with other segments. The digest shows this. So each checkpoint has the digest
 * before and after the next segment, and each of the first segments has a checkpoint.
 * Where the digest is unknown, the segments of the repeated call replace those in the
 * log. */
#include "limits.h"
#include "relay.h"

#include <segue/easy.h>

#include <stdlib.h>
#include <string.h>

/* ---- the digest of the blocks ---- */

/* The digest tells whether the result begins with the blocks that were passed on. The
 * digest of a text block depends only on its text, so that it does not matter in how many
 * segments the text came. */
static uint64_t add_to_digest(uint64_t digest, const char *bytes, size_t len)
{
    digest = digest ? digest : 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        digest = (digest ^ (unsigned char)bytes[i]) * 1099511628211u;
    return digest;
}

/* Returns the text of a text block as a JSON string; empty for another block. */
static json text_of(json block)
{
    json value = json_get(block, "text");
    bool is_text = json_is(json_get(block, "type"), "text") && value.n && *value.p == '"';
    return is_text ? value : (json){NULL, 0};
}

static uint64_t continue_digest(uint64_t digest, json words)
{
    return add_to_digest(digest, words.p + 1, words.n - 2);
}

static uint64_t digest_block(uint64_t digest, json block)
{
    json words = text_of(block);
    if (words.n) /* JSON has no such characters, so they mark where a block begins */
        return continue_digest(add_to_digest(digest, "\1", 1), words);
    return add_to_digest(add_to_digest(digest, "\2", 1), block.p, block.n);
}

/* Returns the digest of these blocks and the next segment; 0 when there is none. */
static uint64_t digest_with(uint64_t digest, uint64_t blocks, const piece *p)
{
    json words = text_of(p->block);
    if (p->index == blocks)
        return digest_block(digest, p->block);
    return p->index + 1 == blocks && words.n ? continue_digest(digest, words) : 0;
}

/* ---- one segment ---- */

static segue_status send_block(relay *r, json block)
{
    segue_content *content;
    segue_status status = segue_content_new(r->up->source->proxy->runtime, &content);
    if (status != SEGUE_OK)
        return status;
    status = segue_content_add_json(content, block.p, block.n, NULL);
    if (status == SEGUE_OK)
        status = segue_call_send(r->call, content, NULL);
    segue_content_free(content);
    return status;
}

static segue_status send_more_text(relay *r, const piece *p)
{
    json words = text_of(p->block);
    size_t len = words.n + 1; /* the decoded text is never longer than the JSON string */
    char *room = words.n ? malloc(len) : NULL;
    if (!room)
        return words.n ? SEGUE_E_NOMEM : SEGUE_E_INVALID;
    segue_status status = segue_json_text(words.p, words.n, room, &len);
    if (status == SEGUE_OK)
        status = segue_call_extend_text(r->call, (int64_t)p->index, room, len, NULL);
    free(room);
    return status;
}

/* Makes the segments in the log void. The checkpoint says so first: a next process
 * replaces them again rather than not at all. */
static segue_status replace(relay *r)
{
    passage *is = &r->passage;
    segue_status status = relay_checkpoint(r);
    if (status != SEGUE_E_WOULD_BLOCK)
        status = segue_call_replace(r->call, NULL);
    if (status != SEGUE_OK)
        return status;
    is->stale = is->grows = is->unsure = false;
    is->digest = is->next_digest = is->blocks = 0;
    is->renewal_due = is->checkpoint_due = true;
    return SEGUE_OK;
}

/* Makes the checkpoint say whether the segments after it continue blocks. The digest of
 * a call that only its key repeats is in the checkpoint, too. */
static segue_status turn(relay *r, bool grows)
{
    passage *is = &r->passage;
    bool keeps_digest = !r->resumable && is->stored < SEGMENTS_WITH_DIGEST;
    if (is->grows == grows && !is->checkpoint_due && !keeps_digest)
        return SEGUE_OK;
    is->grows = grows;
    return relay_checkpoint(r);
}

static segue_status send_piece(relay *r, const piece *p)
{
    passage *is = &r->passage;
    bool begins = p->index == is->blocks;
    is->next_digest = is->unsure ? 0 : digest_with(is->digest, is->blocks, p);
    segue_status turned = turn(r, !begins);
    if (turned == SEGUE_E_WOULD_BLOCK)
        return turned;
    segue_status status = begins ? send_block(r, p->block) : send_more_text(r, p);
    if (status == SEGUE_E_TERMINAL && turned == SEGUE_E_LIMIT)
        return turned; /* the log had no room for the checkpoint, so the call has ended */
    if (status != SEGUE_OK)
        return status;
    is->digest = is->next_digest;
    is->next_digest = 0;
    is->unsure = !is->digest;
    is->number = p->number;
    is->stored++;
    is->blocks += begins;
    if (is->renewal_due || is->stored % SEGMENTS_PER_CHECKPOINT == 0)
        relay_renew_checkpoint(r);
    is->renewal_due = false;
    return SEGUE_OK;
}

/* Holds a segment and all later ones back. The segments in the log stay the beginning of
 * the result, unless a segment that is held back changes them. */
static void hold_back(passage *is, const piece *p)
{
    is->late = true;
    is->stale |= is->blocks && (p->replaces || p->index < is->blocks);
    is->number = p->number;
}

/* True when the call takes no more segments: it has ended, or the server is closed. */
static bool is_over(segue_status status)
{
    return status == SEGUE_E_TERMINAL || status == SEGUE_E_CLOSED ||
           status == SEGUE_E_LIMIT;
}

/* Ends the request to the upstream, because the result is too large for the call. */
static void give_up(relay *r)
{
    r->cancelled = true;
    if (r->request)
        segue_request_cancel(r->request);
}

/* Passes a segment on, or holds it back. Returns SEGUE_E_WOULD_BLOCK when the log has no
 * room; the function is then called again when the log has room. */
static segue_status pass(relay *r, piece *p)
{
    passage *is = &r->passage;
    segue_status status = SEGUE_OK;
    if (is->late) {
        hold_back(is, p);
        return SEGUE_OK;
    }
    if (p->replaces) {
        is->stale = is->stored > 0;
        is->number = p->number - 1;
        p->replaces = false;
    }
    if (is->stale)
        status = replace(r);
    bool is_next = p->number == is->number + 1 && p->index <= is->blocks;
    if (status == SEGUE_OK && is_next)
        status = send_piece(r, p);
    if (status == SEGUE_E_LIMIT)
        give_up(r);
    if (status == SEGUE_E_WOULD_BLOCK || is_over(status))
        return status;
    if (status != SEGUE_OK || !is_next) {
        is->stale |= !is_next && is->blocks > 0; /* earlier segments are missing */
        hold_back(is, p);
    }
    return SEGUE_OK;
}

/* ---- segments that wait ---- */

static void drop_waiting(passage *is)
{
    free((char *)(uintptr_t)is->waiting.block.p);
    is->waiting = (piece){.block = {NULL, 0}};
}

static void let_wait(passage *is, const piece *p)
{
    char *copy = malloc(p->block.n);
    if (!copy) {
        hold_back(is, p);
        return;
    }
    memcpy(copy, p->block.p, p->block.n);
    is->waiting = *p;
    is->waiting.block.p = copy;
    log_event(SEGUE_LOG_DEBUG, "client_slow", NULL,
              "a segment waits until the client has read more");
}

/* Compares a segment of a repeated call with the segments in the log. When the call runs
 * a second time, its result replaces them at the end. */
static void check_repeated(passage *is, const piece *p)
{
    repetition *again = &is->again;
    if (!again->checked)
        return;
    if (p->replaces)
        again->digest = again->blocks = 0;
    if (p->number <= is->number) {
        bool begins = p->index == again->blocks;
        again->digest = digest_with(again->digest, again->blocks, p);
        again->blocks += begins;
    }
    if (p->number < is->number)
        return;
    again->checked = false;
    bool fits = p->number == is->number ? again->digest == is->digest : p->replaces;
    if (!fits)
        is->stale = is->late = true;
}

void segments_take(void *user, segue_request *request, const segue_segment *segment)
{
    relay *r = user;
    passage *is = &r->passage;
    const segue_segment_view *view = segue_segment_read(segment);
    piece p = {view->number, view->index, view->replaces != 0,
               (json){view->data, view->data_len}};
    r->request = r->request ? r->request : request;
    if (is->waiting.block.n)
        return; /* the request has failed, and its last segments need no credit */
    check_repeated(is, &p);
    if (r->call && !r->cancelled && p.number > is->number &&
        pass(r, &p) == SEGUE_E_WOULD_BLOCK)
        let_wait(is, &p);
    if (!is->waiting.block.n)
        segue_request_grant(request, 1);
}

void segments_drain(void *user, segue_call *call)
{
    relay *r = user;
    passage *is = &r->passage;
    if (call != r->call)
        return;
    if (is->waiting.block.n) {
        if (pass(r, &is->waiting) == SEGUE_E_WOULD_BLOCK)
            return;
        drop_waiting(is);
        relay_renew_checkpoint(r);
        if (r->request)
            segue_request_grant(r->request, 1);
    }
    if (is->checkpoint_due && r->unsent)
        relay_send_when_stored(r);
    else if (is->checkpoint_due)
        relay_checkpoint(r);
    if (is->result.len)
        relay_finish(r, (json){is->result.p, is->result.len});
}

void segments_end(relay *r)
{
    drop_waiting(&r->passage);
}

void segments_free(passage *is)
{
    drop_waiting(is);
    text_free(&is->result);
}

/* ---- other runs and other calls ---- */

void segments_begin_anew(relay *r)
{
    passage *is = &r->passage;
    is->stale = is->stored > 0;
    is->late = is->again.checked = false;
    is->number = 0;
}

void segments_repeat(relay *r)
{
    passage *is = &r->passage;
    if (is->unsure) {
        segments_begin_anew(r);
        return;
    }
    is->number = is->blocks ? is->number : 0;
    is->again = (repetition){.checked = is->blocks && !is->late && !is->stale};
}

void segments_hold_back(passage *is)
{
    if (is->waiting.block.n)
        is->number = is->waiting.number;
    is->blocks = is->stored = 0;
    is->digest = is->next_digest = 0;
    is->stale = is->grows = is->unsure = is->again.checked = false;
    is->late = true;
}

/* ---- the end ---- */

/* True when the result begins with the blocks that were passed on. */
static bool is_beginning(const passage *is, json content)
{
    uint64_t digest = 0, count = 0;
    json block;
    for (size_t at = 0; count < is->blocks && json_next(content, &at, NULL, &block);
         count++)
        digest = digest_block(digest, block);
    return count == is->blocks && (is->unsure || digest == is->digest);
}

/* Ends the call with the result without its first blocks. */
static segue_status complete_with_rest(relay *r, json result, segue_error **error)
{
    static const char *const list[] = {"content", NULL};
    text rest = {.p = NULL};
    json block;
    uint64_t count = 0;
    text_add_str(&rest, "{\"content\":[");
    for (size_t at = 0; json_next(json_get(result, "content"), &at, NULL, &block);
         count++) {
        if (count < r->passage.blocks)
            continue;
        text_add_str(&rest, count > r->passage.blocks ? "," : "");
        text_add_json(&rest, block);
    }
    text_add_str(&rest, "]");
    text_add_members(&rest, result, list);
    text_add_str(&rest, "}");
    segue_status status =
        rest.failed ? SEGUE_E_NOMEM
                    : segue_call_complete_json(r->call, rest.p, rest.len, error);
    text_free(&rest);
    return status;
}

segue_status segments_finish(relay *r, json result, segue_error **error)
{
    passage *is = &r->passage;
    segue_status status = SEGUE_OK;
    is->stale |= is->blocks && !is_beginning(is, json_get(result, "content"));
    if (is->stale)
        status = replace(r);
    if (status != SEGUE_OK)
        return status;
    return is->blocks ? complete_with_rest(r, result, error)
                      : segue_call_complete_json(r->call, result.p, result.n, error);
}

/* ---- the checkpoint ---- */

/* A digest has more bits than a number of JSON, so it is a string. */
static void write_digest(text *to, const char *name, uint64_t digest)
{
    if (!digest)
        return;
    text_add_key(to, name);
    text_add_format(to, "\"%016llx\"", (unsigned long long)digest);
}

void segments_write_position(const passage *is, text *to)
{
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {{"number", is->number}, {"stored", is->stored}, {"blocks", is->blocks},
                   {"grows", is->grows},   {"late", is->late},     {"stale", is->stale}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i].value)
            continue;
        text_add_key(to, members[i].name);
        text_add_format(to, "%llu", (unsigned long long)members[i].value);
    }
    write_digest(to, "digest", is->unsure ? 0 : is->digest);
    write_digest(to, "next", is->next_digest);
}

static uint64_t read_count(json checkpoint, const char *name)
{
    int64_t number = json_int(json_get(checkpoint, name), 0);
    return number > 0 ? (uint64_t)number : 0;
}

static uint64_t read_digest(json checkpoint, const char *name)
{
    char *hex = json_string(json_get(checkpoint, name));
    uint64_t digest = hex ? strtoull(hex, NULL, 16) : 0;
    free(hex);
    return digest;
}

void segments_read_position(passage *is, json checkpoint, uint64_t stored)
{
    uint64_t before = read_count(checkpoint, "stored");
    uint64_t more = stored > before ? stored - before : 0;
    is->grows = read_count(checkpoint, "grows") > 0;
    is->late = read_count(checkpoint, "late") > 0;
    is->stale = read_count(checkpoint, "stale") > 0;
    is->stored = stored;
    is->number = read_count(checkpoint, "number") + more;
    is->blocks = read_count(checkpoint, "blocks") + (is->grows ? 0 : more);
    if (more <= 1)
        is->digest = read_digest(checkpoint, more ? "next" : "digest");
    is->unsure = is->blocks && !is->digest;
}
