/* Two Redis servers; the second one replaces the first. */
#ifndef REDIS_PAIR_H
#define REDIS_PAIR_H

#include "support/redis_kit.h"

typedef struct redis_pair {
    redis_server *first, *second;
    cutting_proxy *proxy;
    char url[64]; /* leads to the current primary */
} redis_pair;

void redis_pair_begin(redis_pair *pair);
void redis_pair_end(redis_pair *pair);
/* Separates the servers. Later commits do not reach the second server and will be
 * lost. */
void redis_pair_part(redis_pair *pair);
/* Kills the first server and lets the address lead to the second server. */
void redis_pair_fail_over(redis_pair *pair);

#endif
