/* One write of a commit, as the stores in a database server see it. */
#ifndef SGI_STORE_WRITES_H
#define SGI_STORE_WRITES_H

#include "base/base.h"

/* the maximum length of a task id in a database server */
#define SGI_STORE_TASK_MAX 1024

/* Returns the id of the operation. */
const uint8_t *sgi_store_write_id(const segue_store_write *write);
/* Returns an upper bound of the room that the write needs in a commit. */
size_t sgi_store_write_bytes(const segue_store_write *write);
/* Returns SEGUE_E_INVALID when the write has an unknown kind, or has no usable record. */
segue_status sgi_store_write_check(const segue_store_write *write);

#endif
