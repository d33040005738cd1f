/* Functions about the clients of a server. */
#include "api/guard.h"
#include "engine/error.h"
#include "engine/server/call.h"
#include "engine/server/clients.h"

segue_status segue_server_watch_clients(segue_server *server,
                                        const segue_client_events *events,
                                        segue_error **error)
{
    segue_client_events full;
    segue_status status =
        sgi_enter(SGI_FN_segue_server_watch_clients, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = events ? sgi_copy_struct_in(&full, sizeof full, events) : SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_clients_watch(server, &full);
    return sgi_leave_with_error(server, status, error);
}

/* Takes no lock, because the client of a call never changes. */
uint64_t segue_call_client(const segue_call *call)
{
    return call && call->handle.magic == SGI_MAGIC_CALL ? call->op->served->client : 0;
}

segue_status segue_client_updated(segue_server *server, uint64_t client, const char *uri)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_client_updated, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    status =
        uri ? sgi_client_report_update(server, client, sgi_str_of(uri)) : SEGUE_E_INVALID;
    sgi_leave(server);
    return status;
}

segue_status segue_client_log(segue_server *server, uint64_t client, const char *json,
                              size_t len, segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_status status = sgi_enter(SGI_FN_segue_client_log, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = json ? sgi_client_log(server, client, json, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(server, status, error);
}

segue_status segue_client_call(segue_server *server, uint64_t client, segue_call **out,
                               segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_client_call, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = out ? sgi_client_call(server, client, out) : SEGUE_E_INVALID;
    return sgi_leave_with_error(server, status, error);
}
