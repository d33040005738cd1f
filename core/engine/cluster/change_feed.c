/* Applies the changes of other servers that the store reports: operations that other
 * servers run and whose logs this server reads have grown, forwarded commands have
 * arrived for operations of this server, or owners have gone.
 *
 * A command waits in cluster->commands, in order, while memory is short. A command also
 * waits while operations are being taken over, because the command can be for one of
 * these operations. Any other command for an operation that is not in memory is dropped:
 * it is for another committer on the same store, which also gets the command. When too
 * many commands wait here, the store keeps further commands and reports them again. When
 * the store is also full, the sender of a command gets an error. */
#include "engine/cluster/following.h"
#include "base/thresholds.h"
#include "engine/cluster/rebuild.h"
#include "engine/cluster/recovery.h"

#define FEED_MAX SGI_THRESHOLD(feed_max)
#define AGAIN_MS SGI_THRESHOLD(command_again_ms)

void sgi_change_feed_reset(sgi_change_feed *feed, const sgi_committer *committer)
{
    *feed = (sgi_change_feed){.mem = sgi_engine_mem(committer->engine),
                              .commands = committer->cluster->command_count,
                              .command_bytes = committer->cluster->command_bytes};
    TAILQ_INIT(&feed->list);
}

static bool has_room(const sgi_change_feed *feed)
{
    return feed->commands < SGI_COMMANDS_WAITING_MAX &&
           feed->command_bytes < SGI_COMMANDS_WAITING_BYTES;
}

int32_t sgi_change_feed_add(void *user, const segue_store_news *what)
{
    sgi_change_feed *feed = user;
    bool is_letter = what->kind == SEGUE_STORE_LETTER;
    if (feed->count == FEED_MAX || (is_letter && !has_room(feed)))
        return 1;
    sgi_feed_change *change = sgi_alloc(feed->mem, sizeof *change + what->data_len);
    if (!change)
        return 1;
    change->mem = feed->mem;
    change->what = *what;
    change->what.data = change->data;
    if (what->data_len)
        memcpy(change->data, what->data, what->data_len);
    TAILQ_INSERT_TAIL(&feed->list, change, link);
    feed->count++;
    if (is_letter) {
        feed->commands++;
        feed->command_bytes += what->data_len;
    }
    return 0;
}

static void free_one(sgi_feed_change *change)
{
    sgi_free(change->mem, change, sizeof *change + change->what.data_len);
}

void sgi_feed_change_list_free(struct sgi_feed_change_list *list)
{
    sgi_feed_change *change, *next;
    SGI_TAILQ_EACH(change, list, link, next)
        free_one(change);
    TAILQ_INIT(list);
}

/* ---- forwarded commands ---- */

/* Runs a forwarded command for an operation of this server. A command that this server or
 * an earlier owner has already run is skipped: the store reports a command again until an
 * owner confirms that the command was run. */
static segue_status deal_with(sgi_op *op, const segue_store_news *command)
{
    if (command->number <= op->commands_taken || sgi_op_has_ended(op))
        return SEGUE_OK;
    segue_status status = sgi_op_cluster(op)->observer->command(
        op, (sgi_str){command->data, command->data_len});
    if (status == SEGUE_E_NOMEM)
        return status;
    sgi_op_cluster(op)->counts.commands++;
    op->commands_taken = command->number;
    sgi_committer_mark_dirty(op->committer, op);
    return SEGUE_OK;
}

static void deal_again(sgi_timer *timer)
{
    sgi_forwarded_commands_run_waiting(SGI_OWNER(timer, sgi_cluster, commands_timer));
}

void sgi_forwarded_commands_run_waiting(sgi_cluster *cluster)
{
    sgi_feed_change *change, *next;
    sgi_cluster_ref(cluster);
    SGI_TAILQ_EACH(change, &cluster->commands, link, next) {
        sgi_op *op = sgi_cluster_known_op(cluster, change->what.id);
        bool ours = op && sgi_op_is_owned_here(op);
        if (!ours && (cluster->recovering || !TAILQ_EMPTY(&cluster->claims)))
            continue;
        if (op)
            sgi_op_ref(op);
        segue_status status = ours ? deal_with(op, &change->what) : SEGUE_OK;
        if (op)
            sgi_op_unref(op);
        if (status == SEGUE_E_NOMEM) {
            sgi_engine_set_timer(cluster->engine, &cluster->commands_timer, AGAIN_MS,
                                 deal_again);
            break;
        }
        TAILQ_REMOVE(&cluster->commands, change, link);
        cluster->command_count--;
        cluster->command_bytes -= change->what.data_len;
        free_one(change);
    }
    sgi_cluster_unref(cluster);
}

/* ---- growth of operations ---- */

/* Makes the committer write to the operation at once. The outcome of the write shows
 * whether this server still owns the operation. Called when another server may have taken
 * over an operation that runs here, or when the store may have lost the operation's last
 * entries. Without this write, the next write might come much later. */
static void doubt(sgi_op *op)
{
    if (sgi_op_has_ended(op) || !sgi_op_is_created(op))
        return;
    op->doubts.count++;
    sgi_committer_mark_dirty(op->committer, op);
}

static void doubt_one(void *user, sgi_index_node *node)
{
    sgi_op *op = sgi_op_of_id_node(node);
    (void)user;
    if (sgi_op_is_owned_here(op) && !sgi_op_cluster(op)->observer->is_box(op))
        doubt(op);
}

/* Calls `doubt` for all operations of this server. The observer's function `doubted`
 * replaces the server's mailbox (to which other servers send answers), because another
 * server may own the old mailbox and delete it. */
static void doubt_all(sgi_cluster *cluster)
{
    sgi_index_each(&cluster->by_id, doubt_one, NULL);
    cluster->observer->doubted(cluster);
}

static void grew(sgi_cluster *cluster, const uint8_t *id)
{
    sgi_op *op = sgi_cluster_known_op(cluster, id);
    if (op && sgi_op_runs_elsewhere(op))
        sgi_followed_read_more(op);
    else if (op && sgi_op_cluster(op)->observer->is_box(op))
        /* another server owns the mailbox now, so this server makes a new mailbox */
        cluster->observer->box_lost(op);
    else if (op)
        doubt(op);
    else if (!sgi_rebuild_note_growth(cluster, id))
        sgi_followed_unsubscribe(cluster, id);
}

/* ---- the whole feed ---- */

void sgi_change_feed_apply(sgi_committer *committer, sgi_change_feed *feed)
{
    sgi_cluster *cluster = committer->cluster;
    sgi_feed_change *change, *next;
    cluster->cut_off = feed->status == SEGUE_E_STORE;
    sgi_cluster_ref(cluster);
    SGI_TAILQ_EACH(change, &feed->list, link, next) {
        TAILQ_REMOVE(&feed->list, change, link);
        if (cluster->committer->closed) {
            free_one(change);
            continue;
        }
        if (change->what.kind == SEGUE_STORE_LETTER) {
            TAILQ_INSERT_TAIL(&cluster->commands, change, link);
            cluster->command_count++;
            cluster->command_bytes += change->what.data_len;
            continue;
        }
        if (change->what.kind == SEGUE_STORE_GREW)
            grew(cluster, change->what.id);
        else if (change->what.kind == SEGUE_STORE_ORPHANS)
            sgi_recover_orphans(cluster);
        else if (change->what.kind == SEGUE_STORE_DOUBT)
            doubt_all(cluster);
        else
            sgi_followed_read_all(cluster);
        free_one(change);
    }
    if (!TAILQ_EMPTY(&cluster->commands))
        sgi_forwarded_commands_run_waiting(cluster);
    feed->count = 0;
    sgi_cluster_unref(cluster);
}
