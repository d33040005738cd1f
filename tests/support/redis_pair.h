/* Two Redis servers, of which the second one takes the place of the first. */
#ifndef REDIS_PAIR_H
#define REDIS_PAIR_H

#include "support/redis_kit.h"

typedef struct redis_pair {
    redis_server *first, *second;
    cutting_proxy *proxy;
    char url[64]; /* of whichever is the primary */
} redis_pair;

void redis_pair_begin(redis_pair *pair);
void redis_pair_end(redis_pair *pair);
/* What is answered from now on is lost: the second one hears no more. */
void redis_pair_part(redis_pair *pair);
/* The first one dies; the address leads to the second. */
void redis_pair_fail_over(redis_pair *pair);

#endif
