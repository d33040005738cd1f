#include "store/writes.h"

const uint8_t *sgi_store_write_id(const segue_store_write *write)
{
    return write->kind == SEGUE_STORE_CREATE ? write->record->id : write->id;
}

size_t sgi_store_write_bytes(const segue_store_write *write)
{
    size_t data = 0;
    if (write->kind == SEGUE_STORE_CREATE)
        data = write->record->data_len + SGI_STORE_TASK_MAX;
    else if (write->kind == SEGUE_STORE_APPEND)
        data = write->entry.data_len;
    return data + 128;
}

segue_status sgi_store_write_check(const segue_store_write *write)
{
    size_t len;
    switch (write->kind) {
    case SEGUE_STORE_CREATE:
        if (!write->record || !write->record->task_id)
            return SEGUE_E_INVALID;
        len = strlen(write->record->task_id);
        return len && len <= SGI_STORE_TASK_MAX ? SEGUE_OK : SEGUE_E_INVALID;
    case SEGUE_STORE_APPEND:
    case SEGUE_STORE_END:
    case SEGUE_STORE_DELETE:
    case SEGUE_STORE_RELEASE:
    case SEGUE_STORE_DROP:
    case SEGUE_STORE_TAKEN:
        return SEGUE_OK;
    default:
        return SEGUE_E_INVALID;
    }
}
