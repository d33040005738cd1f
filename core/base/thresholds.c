#include "base/thresholds.h"

#include "base/rare.h"

#ifdef SGI_KNOBS
sgi_threshold_values sgi_thresholds = {
#define THRESHOLD(type, name, value, least, unit, sentence) .name = (value),
#include "base/thresholds.def"
#undef THRESHOLD
};

unsigned long sgi_rare_counts[SGI_RARE_EVENTS];
#else
/* without this typedef the file would be empty, which ISO C forbids */
typedef int sgi_thresholds_are_constants;
#endif
