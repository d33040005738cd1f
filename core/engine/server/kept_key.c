/* The key is in the record of an operation that has ended when it is made, and that no
 * client can find: no principal has the digest of its owner. So no server claims it, and
 * no purge deletes it. The data of the record is
 * {"tool":"dev.segue/seal-key","params":{"key":"<base64>"}}. */
#include "engine/server/kept_key.h"

#include "engine/cluster/recovery.h"
#include "engine/error.h"

#define AGAIN_MS SGI_THRESHOLD(claim_again_ms)
#define NAME "dev.segue/seal-key"
#define OWNER 0xfe /* each byte of the owner's digest; a mailbox has 0xff */

static void ask(segue_server *server);

static void ask_again(sgi_timer *timer)
{
    ask(SGI_OWNER(timer, segue_server, kept_key.again));
}

/* Starts recovery if it has waited for the key. */
static void go_on(segue_server *server)
{
    bool waits = server->kept_key.holds_recovery;
    server->kept_key.holds_recovery = false;
    if (waits && server->stage == SGI_SERVER_RECOVERING)
        sgi_recover_ops(&server->cluster);
}

static bool is_owner(const uint8_t digest[SGI_DIGEST_SIZE])
{
    for (size_t i = 0; i < SGI_DIGEST_SIZE; i++)
        if (digest[i] != OWNER)
            return false;
    return true;
}

/* Uses the key of the record that the store has. */
static segue_status take(segue_server *server, const segue_store_record *record)
{
    sgi_json data;
    sgi_str text;
    sgi_buf key;
    segue_status status = sgi_engine_check_json(server->engine, record->data,
                                                record->data_len, &data, NULL);
    if (status != SEGUE_OK)
        return status == SEGUE_E_NOMEM ? status : SEGUE_E_STORE_CORRUPT;
    sgi_buf_init(&key, sgi_engine_mem(server->engine));
    bool ok =
        is_owner(record->principal) &&
        sgi_json_plain_string(sgi_json_get(sgi_json_get(data, "params"), "key"), &text) &&
        sgi_buf_add_unbase64(&key, text) && key.len == SGI_AEAD_KEY;
    if (ok)
        sgi_seal_set_kept_key(&server->seal, (const uint8_t *)key.p);
    else
        status = key.failed ? SEGUE_E_NOMEM : SEGUE_E_STORE_CORRUPT;
    sgi_buf_free(&key);
    return status;
}

/* A record that cannot be read stays as it is, so the store is not asked again. */
static void note_failure(segue_server *server, segue_status status)
{
    if (!server->kept_key.failed)
        sgi_engine_log(server->engine, SEGUE_LOG_WARNING,
                       "the store keeps no seal_key for this server (%s): until it does, "
                       "sessions end with this server",
                       sgi_status_name(status));
    server->kept_key.failed = true;
    if (status != SEGUE_E_STORE_CORRUPT && server->stage < SGI_SERVER_CLOSED)
        sgi_engine_set_timer(server->engine, &server->kept_key.again, AGAIN_MS,
                             ask_again);
}

static void answered(sgi_store_job *job)
{
    segue_server *server = job->user;
    const sgi_found_record *found = TAILQ_FIRST(&job->found);
    segue_status status = job->status;
    if (status == SEGUE_OK)
        status = found ? take(server, &found->record) : SEGUE_E_STORE_CORRUPT;
    if (status != SEGUE_OK)
        note_failure(server, status);
    sgi_store_job_free(job);
    go_on(server);
    sgi_server_unref(server);
}

/* Writes the data of the record for the key that this server has made. */
static bool write_data(const segue_server *server, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "tool", SGI_STR(NAME));
    sgi_jw_key(&w, "params");
    sgi_jw_open(&w, '{');
    sgi_jw_key(&w, "key");
    sgi_buf_add_char(out, '"');
    sgi_buf_add_base64(out, server->seal.keys[0], SGI_AEAD_KEY, true);
    sgi_buf_add_char(out, '"');
    sgi_jw_close(&w, '}');
    sgi_jw_close(&w, '}');
    return !out->failed;
}

static bool fill(sgi_store_job *job, segue_server *server)
{
    job->task_id = sgi_text_dup(job->mem, SGI_STR(NAME));
    job->now_ms = sgi_wall_now(&server->engine->env);
    memset(job->key, OWNER, sizeof job->key);
    return job->task_id && write_data(server, &job->command) &&
           sgi_random(&server->engine->env, job->id, sizeof job->id);
}

static void ask(segue_server *server)
{
    sgi_store_job *job =
        sgi_store_job_new(&server->committer, SGI_STORE_JOB_KEEP, answered, server);
    if (!job || !fill(job, server)) {
        if (job)
            sgi_store_job_free(job);
        note_failure(server, SEGUE_E_NOMEM);
        go_on(server);
        return;
    }
    sgi_server_ref(server);
    sgi_committer_add_job(&server->committer, job);
}

void sgi_kept_key_get(segue_server *server, bool then_recover)
{
    bool asks = !server->kept_key.asked && !server->seal.shared && !server->forgets;
    server->kept_key.holds_recovery |= then_recover;
    server->kept_key.asked = true;
    if (asks)
        ask(server);
    else if (then_recover)
        go_on(server);
}
