#include "engine/cluster/cluster.h"

#include "engine/cluster/recovery.h"

static sgi_str task_id_of(const sgi_index_node *node)
{
    return sgi_str_of(sgi_op_of_task_node(node)->task_id);
}

static sgi_str id_of(const sgi_index_node *node)
{
    const sgi_op *op = sgi_op_of_id_node(node);
    return (sgi_str){(const char *)op->id, sizeof op->id};
}

sgi_op *sgi_cluster_known_task(const sgi_cluster *cluster, sgi_str task_id)
{
    return sgi_op_of_task_node(sgi_index_find(&cluster->by_task, task_id));
}

sgi_op *sgi_cluster_known_op(const sgi_cluster *cluster, const uint8_t *id)
{
    sgi_str key = {(const char *)id, SEGUE_STORE_ID_SIZE};
    return sgi_op_of_id_node(sgi_index_find(&cluster->by_id, key));
}

void sgi_cluster_init(sgi_cluster *cluster, sgi_committer *committer,
                      const sgi_cluster_observer *observer)
{
    static const sgi_index_keys task_ids = {.of = task_id_of, .are_random = true};
    static const sgi_index_keys ids = {.of = id_of, .are_random = true};
    sgi_engine *engine = committer->engine;
    committer->cluster = cluster;
    cluster->committer = committer;
    cluster->engine = engine;
    cluster->observer = observer;
    sgi_index_init(&cluster->by_task, &engine->env, &task_ids);
    sgi_index_init(&cluster->by_id, &engine->env, &ids);
    sgi_map_init(&cluster->claims_by_id, &engine->env);
    TAILQ_INIT(&cluster->followed_ops);
    LIST_INIT(&cluster->rebuilds);
    TAILQ_INIT(&cluster->commands);
    TAILQ_INIT(&cluster->claims);
}

void sgi_cluster_close(sgi_cluster *cluster)
{
    cluster->takes = false;
    sgi_engine_clear_timer(cluster->engine, &cluster->claim_timer);
    sgi_engine_clear_timer(cluster->engine, &cluster->commands_timer);
}

void sgi_cluster_free(sgi_cluster *cluster)
{
    sgi_cluster_close(cluster);
    sgi_claims_free(cluster);
    sgi_feed_change_list_free(&cluster->commands);
    sgi_index_free(&cluster->by_task);
    sgi_index_free(&cluster->by_id);
    sgi_map_free(&cluster->claims_by_id);
}
