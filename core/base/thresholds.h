/* The thresholds of thresholds.def. SGI_THRESHOLD(name) is the value. In a build with
 * SGI_KNOBS the values are variables that tests change before a runtime is made. In every
 * other build they are constants. */
#ifndef SGI_THRESHOLDS_H
#define SGI_THRESHOLDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgi_threshold_values {
#define THRESHOLD(type, name, value, least, unit, sentence) type name;
#include "base/thresholds.def"
#undef THRESHOLD
} sgi_threshold_values;

#define SGI_THRESHOLD(name) (sgi_thresholds.name)

#ifdef SGI_KNOBS
extern sgi_threshold_values sgi_thresholds;
#else
static const sgi_threshold_values sgi_thresholds = {
#define THRESHOLD(type, name, value, least, unit, sentence) .name = (value),
#include "base/thresholds.def"
#undef THRESHOLD
};
#endif

#endif
