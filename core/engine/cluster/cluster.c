#include "engine/cluster/cluster.h"

#include "engine/cluster/recovery.h"

void sgi_cluster_init(sgi_cluster *cluster, sgi_committer *committer,
                      const sgi_cluster_observer *observer)
{
    sgi_engine *engine = committer->engine;
    committer->cluster = cluster;
    cluster->committer = committer;
    cluster->engine = engine;
    cluster->observer = observer;
    sgi_map_init(&cluster->by_task, &engine->env);
    sgi_map_init(&cluster->by_id, &engine->env);
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
    sgi_map_free(&cluster->by_task);
    sgi_map_free(&cluster->by_id);
    sgi_map_free(&cluster->claims_by_id);
}
