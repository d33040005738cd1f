/* Counting for the metrics. A name that a client sends never becomes a label: calls are
 * counted in the item that they run, requests in the method that serves them, and all
 * others together. */
#include "engine/server/metrics.h"

const sgi_metrics_kind sgi_metrics_kinds[SGI_METRICS_KINDS] = {
    {&sgi_call_tool, SEGUE_ITEM_TOOL, "gen_ai_tool_name"},
    {&sgi_call_prompt, SEGUE_ITEM_PROMPT, "gen_ai_prompt_name"},
    {&sgi_call_resource, SEGUE_ITEM_RESOURCE, "mcp_resource_uri"},
    {&sgi_call_resource, SEGUE_ITEM_RESOURCE_TEMPLATE, "mcp_resource_template"},
};

/* True when calls of this kind run the item itself; a completion does not. */
static bool is_call_of(const sgi_call_kind *kind, const sgi_item *item)
{
    for (size_t i = 0; i < SGI_METRICS_KINDS; i++)
        if (sgi_metrics_kinds[i].type == item->type)
            return sgi_metrics_kinds[i].kind == kind;
    return false;
}

void sgi_metrics_count_end(const sgi_op *op, int64_t took_ms)
{
    sgi_item *item = op->served->item;
    if (!item || !is_call_of(op->served->kind, item))
        return;
    if (!item->tally)
        item->tally = sgi_zalloc(item->mem, sizeof *item->tally);
    if (!item->tally)
        return;
    sgi_metrics_era era = op->served->only_objects ? SGI_ERA_LEGACY : SGI_ERA_MODERN;
    item->tally->ends[era][op->head.final]++;
    sgi_histogram_add(&item->tally->took, &sgi_scale_of_calls,
                      took_ms > 0 ? (uint64_t)took_ms : 0);
}

void sgi_metrics_free_item(sgi_item *item)
{
    if (item->tally)
        sgi_free(item->mem, item->tally, sizeof *item->tally);
    item->tally = NULL;
}

static sgi_metrics_era era_of(const sgi_inbound *in)
{
    return sgi_facts(in->version)->is_stateless ? SGI_ERA_MODERN : SGI_ERA_LEGACY;
}

void sgi_metrics_count_unknown(const sgi_inbound *in, int32_t type)
{
    for (size_t i = 0; i < SGI_METRICS_KINDS; i++)
        if (sgi_metrics_kinds[i].type == type)
            in->peer->server->counts.asked.unknown[i][era_of(in)]++;
}

/* Returns the row of the method, which is new if the method has none. Rows are found by
 * the address of the method. Returns the row of unknown methods when all are taken. */
static sgi_asked_method *row_of(sgi_asked *asked, const sgi_method *method)
{
    size_t at = (uintptr_t)method / sizeof *method;
    for (size_t i = 0; i < SGI_ASKED_METHODS; i++) {
        sgi_asked_method *row = &asked->methods[(at + i) % SGI_ASKED_METHODS];
        if (!row->method)
            row->method = method;
        if (row->method == method)
            return row;
    }
    return &asked->others;
}

void sgi_metrics_count_request(const sgi_inbound *in, const sgi_method *method)
{
    sgi_asked *asked = &in->peer->server->counts.asked;
    sgi_asked_method *row = method ? row_of(asked, method) : &asked->others;
    row->count[era_of(in)]++;
}
