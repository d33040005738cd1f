/* What others did, as the store tells it: operations that we follow have grown, letters
 * are there for those that are ours, owners have gone.
 *
 * A letter waits (keeper->letters, in order) while there is no memory to deal with it,
 * or while operations are being taken over, or wait to be read again for that, of which
 * it may be. What is not ours then is another keeper's of the same store, who was told as
 * well. When too many wait the others stay where they are: the store tells them again,
 * and when it is full as well, whoever sends one is told. */
#include "engine/log/following.h"
#include "engine/log/recovery.h"
#include "engine/serving/errands.h"
#include "engine/serving/mail.h"
#include "engine/serving/server.h"

#define PAPER_MAX 256
#define AGAIN_MS 100

void sgi_paper_open(sgi_paper *paper, const sgi_keeper *keeper)
{
    *paper = (sgi_paper){.mem = sgi_engine_mem(keeper->engine),
                         .letters = keeper->letter_count,
                         .letter_bytes = keeper->letter_bytes};
    TAILQ_INIT(&paper->list);
}

static bool has_room(const sgi_paper *paper)
{
    return paper->letters < SGI_LETTERS_WAIT_MAX &&
           paper->letter_bytes < SGI_LETTERS_WAIT_BYTES;
}

int32_t sgi_paper_take(void *user, const segue_store_news *what)
{
    sgi_paper *paper = user;
    bool is_letter = what->kind == SEGUE_STORE_LETTER;
    if (paper->count == PAPER_MAX || (is_letter && !has_room(paper)))
        return 1;
    sgi_news *news = sgi_alloc(paper->mem, sizeof *news + what->data_len);
    if (!news)
        return 1;
    news->mem = paper->mem;
    news->what = *what;
    news->what.data = news->data;
    if (what->data_len)
        memcpy(news->data, what->data, what->data_len);
    TAILQ_INSERT_TAIL(&paper->list, news, link);
    paper->count++;
    if (is_letter) {
        paper->letters++;
        paper->letter_bytes += what->data_len;
    }
    return 0;
}

static void free_one(sgi_news *news)
{
    sgi_release(news->mem, news, sizeof *news + news->what.data_len);
}

void sgi_news_free(struct sgi_news_list *list)
{
    sgi_news *news, *next;
    SGI_TAILQ_EACH(news, list, link, next)
        free_one(news);
    TAILQ_INIT(list);
}

static segue_server *server_of(sgi_keeper *keeper)
{
    return SGI_OWNER(keeper, segue_server, keeper);
}

static sgi_op *find_op(const segue_server *server, const uint8_t *id)
{
    sgi_map_node *node =
        sgi_map_find(&server->by_id, (sgi_str){(const char *)id, SEGUE_STORE_ID_SIZE});
    return node ? SGI_OWNER(node, sgi_op, by_id) : NULL;
}

/* ---- letters ---- */

/* One that has been dealt with may be told again: whoever owned it before could not say
 * so any more. */
static segue_status deal_with(sgi_op *op, const segue_store_news *letter)
{
    if (letter->number <= op->letters_taken || sgi_op_has_ended(op))
        return SEGUE_OK;
    segue_status status = sgi_letter_read(op, (sgi_str){letter->data, letter->data_len});
    if (status == SEGUE_E_NOMEM)
        return status;
    op->server->counts.letters++;
    op->letters_taken = letter->number;
    sgi_keeper_dirty(&op->server->keeper, op);
    return SEGUE_OK;
}

static void deal_again(sgi_timer *timer)
{
    sgi_letters_deal(SGI_OWNER(timer, sgi_keeper, letters_again));
}

void sgi_letters_deal(sgi_keeper *keeper)
{
    segue_server *server = server_of(keeper);
    sgi_news *news, *next;
    sgi_server_ref(server);
    SGI_TAILQ_EACH(news, &keeper->letters, link, next) {
        sgi_op *op = find_op(server, news->what.id);
        bool ours = op && sgi_op_is_ours(op);
        if (!ours && (server->recovering || !TAILQ_EMPTY(&server->claims)))
            continue;
        if (op)
            sgi_op_ref(op);
        segue_status status = ours ? deal_with(op, &news->what) : SEGUE_OK;
        if (op)
            sgi_op_unref(op);
        if (status == SEGUE_E_NOMEM) {
            sgi_engine_timer(keeper->engine, &keeper->letters_again, AGAIN_MS,
                             deal_again);
            break;
        }
        TAILQ_REMOVE(&keeper->letters, news, link);
        keeper->letter_count--;
        keeper->letter_bytes -= news->what.data_len;
        free_one(news);
    }
    sgi_server_unref(server);
}

/* ---- growth ---- */

/* Somebody else writes to what we run: he has taken it over, and our next commit is
 * refused. Or the store may have lost the last ones. There may be none for long, so one
 * is made. */
static void doubt(sgi_op *op)
{
    if (sgi_op_has_ended(op) || !op->created)
        return;
    op->doubted = true;
    sgi_keeper_dirty(&op->server->keeper, op);
}

static void doubt_one(void *user, sgi_map_node *node)
{
    sgi_op *op = SGI_OWNER(node, sgi_op, by_id);
    (void)user;
    if (sgi_op_is_ours(op) && !sgi_mail_is_box(op))
        doubt(op);
}

/* The mailbox may be another's by now, who makes away with it: it is made anew. */
static void doubt_all(segue_server *server)
{
    sgi_map_each(&server->by_id, doubt_one, NULL);
    if (server->mailbox)
        sgi_mail_lost(server->mailbox);
}

static void grew(segue_server *server, const uint8_t *id)
{
    sgi_op *op = find_op(server, id);
    if (op && sgi_op_is_elsewhere(op))
        sgi_followed_look(op);
    else if (op && sgi_mail_is_box(op))
        sgi_mail_lost(op); /* nobody else has to do with it */
    else if (op)
        doubt(op);
    else if (!sgi_rebuild_grew(server, id))
        sgi_followed_leave(server, id);
}

/* ---- all of it ---- */

void sgi_keeper_tell(sgi_keeper *keeper, sgi_paper *paper)
{
    segue_server *server = server_of(keeper);
    sgi_news *news, *next;
    sgi_server_ref(server);
    SGI_TAILQ_EACH(news, &paper->list, link, next) {
        TAILQ_REMOVE(&paper->list, news, link);
        if (server->stage == SGI_SERVER_DEAD) {
            free_one(news);
            continue;
        }
        if (news->what.kind == SEGUE_STORE_LETTER) {
            TAILQ_INSERT_TAIL(&keeper->letters, news, link);
            keeper->letter_count++;
            keeper->letter_bytes += news->what.data_len;
            continue;
        }
        if (news->what.kind == SEGUE_STORE_GREW)
            grew(server, news->what.id);
        else if (news->what.kind == SEGUE_STORE_ORPHANS)
            sgi_recover_orphans(server);
        else if (news->what.kind == SEGUE_STORE_DOUBT)
            doubt_all(server);
        else
            sgi_followed_look_all(server);
        free_one(news);
    }
    if (!TAILQ_EMPTY(&keeper->letters))
        sgi_letters_deal(keeper);
    paper->count = 0;
    sgi_server_unref(server);
}
