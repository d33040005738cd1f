/* The Lua scripts of the Redis store.
 *
 * Keys. All start with one prefix that is a hash tag ("{segue}:"), KEYS[1] of every
 * script:
 *
 *   format          "1", or "2" since no server lives that reads only format 1; the keys
 *                   are the same (core/docs/upgrades.md)
 *   owner           counter of owner numbers
 *   owners          hash: owner -> its lease in ms (0 = it has closed)
 *   done            hash: owner -> number of its last call that changed something
 *   history         hash: r which history the data are of, n number of breaks
 *                   (redis_history.c)
 *   seen            hash: owner -> time at which it last took or prolonged its lease, ms
 *   lapsed          hash: owner -> time at which it last took its lease again after the
 *                   lease had lapsed, ms
 *   away            hash: owner that was silent at a break -> number of breaks before it
 *   lease:<owner>   exists while the owner lives (PX)
 *   open:<owner>    set: its operations that have not ended; "open:" = without an owner
 *   claimed:<owner> set: claimed, and not yet acknowledged as shown
 *   mail:<owner>    set: its operations for which forwarded commands wait
 *   op:<id>         hash: o owner, e ended, u purge time, m number of the last command,
 *                   f is followed, x how many more numbers than entries the log has
 *                   (dropped entries, bundled entries), d<kind> number up to which this
 *                   kind was dropped, b bytes, h number of breaks when its owner last
 *                   knew that its log was complete
 *   rec:<id>        the constant part: created (8), has key (1), key (32), principal
 *                   (32), length of the task id (2), task id, data
 *   log:<id>        stream: entry seq is seq-0, one field "e": kind (4), segment (8),
 *                   event (8), time (8), data; or "b" (a bundle): several small entries
 *                   of one commit, each after its length (4); seq is the last one's
 *   post:<id>       list: waiting commands; the last one has number m
 *   fol:<id>        set: owners that follow the operation
 *   task, key       hashes: task id, idempotency key -> id
 *   list:<principal> sorted by bytes: created, task id, NUL, id
 *   bytes           hash: principal -> bytes of records and entries, if limited
 *   purge           sorted by bytes: purge time, id; only operations that have one
 *
 * A number in a sorted set is big-endian with the sign bit flipped, so that the bytes
 * sort in the order of the numbers. Channels: news:<owner> ("G" and ids of operations
 * that grew; "L" and the id of an operation that got a command), all ("O" and the sender:
 * there may be an operation to claim).
 *
 * The name of an owner is its number, a random part and the newest format that it reads,
 * with dots between them. Owners that read only format 1 have no third part.
 *
 * Redis does not undo a script that fails in the middle. Therefore scripts check
 * everything before the first write, and no write fails after that. Redis refuses a
 * script for lack of memory only at its first write. A script that must work in a full
 * store therefore begins with a write that needs no memory (DEL of a key that never
 * exists).
 *
 * Numbers of calls: a call that is repeated because its answer was lost has the number
 * of the first try, and `done` shows whether the first try was applied. A late copy
 * from an abandoned connection has a lower number than the calls after it, so it does
 * nothing. A commit may also be repeated under a new number. It then finds its
 * entries, with the same numbers, and its records, of the same owner; finding them is
 * not an error. */
#include "store/redis_script.h"

/* Gives an owner its lease and writes the time into `seen`. Both happen in the same
 * function, because an owner that is not in `seen` is never recorded in `away`. */
static const char LEASE[] =
    "local function hold(o, ms)\n"
    "  redis.call('SET', KEYS[1] .. 'lease:' .. o, '1', 'PX', ms)\n"
    "  redis.call('HSET', KEYS[1] .. 'owners', o, ms)\n"
    "  local now = redis.call('TIME')\n"
    "  local ms = string.format('%.0f', now[1] * 1000 + now[2] / 1000)\n"
    "  redis.call('HSET', KEYS[1] .. 'seen', o, ms)\n"
    "  return ms\n"
    "end\n";

/* The beginning of every script that changes something. */
static const char LIFE[] =
    "local call, P = redis.call, KEYS[1]\n"
    "local me, number, lease = ARGV[1], ARGV[2], ARGV[3]\n"
    "local breaks = call('HGET', P .. 'history', 'n')\n"
    "local function done()\n"
    "  return tonumber(call('HGET', P .. 'done', me) or -1) >= tonumber(number)\n"
    "end\n"
    "local function live()\n"
    "  if call('EXISTS', P .. 'lease:' .. me) == 1 then return end\n"
    "  call('HSET', P .. 'lapsed', me, hold(me, lease))\n"
    "end\n"
    "local function anyway() call('DEL', P .. 'none') end\n"
    "local function began() call('HSET', P .. 'done', me, number) live() end\n";

/* Collects, for each owner that follows operations, those that have changed, and sends
 * one message to each of these owners. A follower that does not receive the message is
 * gone, or will follow the operations again when it reconnects. */
static const char TELL[] =
    "local news = {}\n"
    "local function grew(id)\n"
    "  for _, f in ipairs(call('SMEMBERS', P .. 'fol:' .. id)) do\n"
    "    if f ~= me then\n"
    "      news[f] = news[f] or {}\n"
    "      table.insert(news[f], id)\n"
    "    end\n"
    "  end\n"
    "end\n"
    "local function tell()\n"
    "  for f, ids in pairs(news) do\n"
    "    if call('PUBLISH', P .. 'news:' .. f, 'G' .. table.concat(ids)) == 0 then\n"
    "      for _, id in ipairs(ids) do call('SREM', P .. 'fol:' .. id, f) end\n"
    "    end\n"
    "  end\n"
    "end\n";

static const char RECORD[] =
    "local NEVER = string.rep('\\255', 8)\n"
    "local function head(r)\n"
    "  local n = r:byte(74) * 256 + r:byte(75)\n"
    "  return {c = r:sub(1, 8), k = r:byte(9) == 1 and r:sub(10, 41),\n"
    "    p = r:sub(42, 73), t = r:sub(76, 75 + n)}\n"
    "end\n"
    "local function place(h, id) return h.c .. h.t .. '\\0' .. id end\n"
    "local function stored(id) return call('GETRANGE', P .. 'rec:' .. id, 0, 1199) end\n"
    "local function remove(id)\n"
    "  local v = call('HMGET', P .. 'op:' .. id, 'o', 'u', 'b')\n"
    "  local r = stored(id)\n"
    "  if #r >= 75 then\n"
    "    local h = head(r)\n"
    "    call('HDEL', P .. 'task', h.t)\n"
    "    if h.k then call('HDEL', P .. 'key', h.k) end\n"
    "    call('ZREM', P .. 'list:' .. h.p, place(h, id))\n"
    "    if v[3] and call('HINCRBY', P .. 'bytes', h.p, -v[3]) <= 0 then\n"
    "      call('HDEL', P .. 'bytes', h.p)\n"
    "    end\n"
    "  end\n"
    "  if v[1] then\n"
    "    call('ZREM', P .. 'purge', v[2] .. id)\n"
    "    call('SREM', P .. 'open:' .. v[1], id)\n"
    "    call('SREM', P .. 'mail:' .. v[1], id)\n"
    "  end\n"
    "  call('UNLINK', P .. 'op:' .. id, P .. 'rec:' .. id, P .. 'log:' .. id,\n"
    "    P .. 'post:' .. id, P .. 'fol:' .. id)\n"
    "end\n";

/* ---- reading ---- */

static const char SHOW[] = "local call, P = redis.call, KEYS[1]\n"
                           "local function show(id)\n"
                           "  local v = call('HMGET', P .. 'op:' .. id, 'e', 'u')\n"
                           "  return {id, call('GET', P .. 'rec:' .. id), v[1], v[2]}\n"
                           "end\n";

/* Finds an operation. ARGV: "task" and a task id, or "key" and an idempotency key. */
static const char FIND[] = "local id = call('HGET', P .. ARGV[1], ARGV[2])\n"
                           "return id and show(id) or -8\n";

/* Lists one page of operations. ARGV: principal, the position at which the previous page
 * ended, maximum count. The reply has the position and the record of each operation. */
static const char LIST[] =
    "local page = call('ZREVRANGEBYLEX', P .. 'list:' .. ARGV[1], ARGV[2], '-',\n"
    "  'LIMIT', 0, ARGV[3])\n"
    "local out = {}\n"
    "for i, m in ipairs(page) do out[i] = {m, unpack(show(m:sub(-16)))} end\n"
    "return out\n";

/* ---- owners ---- */

/* Decides whether an owner is gone: its lease has expired. A lease that expired while
 * Redis itself was down does not count; its owner gets the time of one full lease after
 * Redis is back. */
static const char GONE[] =
    "local uptime\n"
    "local function gone(o, ms)\n"
    "  if o == me or call('EXISTS', P .. 'lease:' .. o) == 1 then return false end\n"
    "  if not uptime then\n"
    "    local ok, text = pcall(call, 'INFO', 'server')\n"
    "    local s = ok and tostring(text):match('uptime_in_seconds:(%d+)')\n"
    "    uptime = s and tonumber(s) * 1000 or math.huge\n"
    "  end\n"
    "  return uptime >= tonumber(ms)\n"
    "end\n"
    "local function each_gone(fn)\n"
    "  local all = call('HGETALL', P .. 'owners')\n"
    "  for i = 1, #all, 2 do\n"
    "    if gone(all[i], all[i + 1]) and fn(all[i]) then return end\n"
    "  end\n"
    "end\n"
    "local function forget(o)\n"
    "  call('HDEL', P .. 'owners', o)\n"
    "  call('HDEL', P .. 'done', o)\n"
    "  call('HDEL', P .. 'seen', o)\n"
    "  call('HDEL', P .. 'lapsed', o)\n"
    "  call('HDEL', P .. 'away', o)\n"
    "  call('UNLINK', P .. 'mail:' .. o, P .. 'claimed:' .. o)\n"
    "end\n";

/* Counts breaks (times at which Redis may have lost data). ARGV: format; the history
 * of this server; which data the server keeps when it stops (2 = everything that it
 * has confirmed, 1 = everything except the last moments, 0 = unknown); whether the
 * server was a replica. The reply is the number of breaks. Data of a newer format are
 * not changed. */
static const char HISTORY[] =
    "local call, P = redis.call, KEYS[1]\n"
    "local format = call('GET', P .. 'format')\n"
    "if format and tonumber(format) > tonumber(ARGV[1]) then return 0 end\n"
    "local v = call('HMGET', P .. 'history', 'r', 'n')\n"
    "local was, n = v[1], tonumber(v[2] or 0)\n"
    "if was == ARGV[2] then return n end\n"
    "call('DEL', P .. 'none')\n"
    "local same = was and was:sub(1, 40) == ARGV[2]:sub(1, 40) and ARGV[4] == '0'\n"
    "local function quiet()\n"
    "  local all = call('HGETALL', P .. 'owners')\n"
    "  for i = 2, #all, 2 do if all[i] ~= '0' then return false end end\n"
    "  return true\n"
    "end\n"
    "same = same or ARGV[3] == '2' or ARGV[3] == '1' and quiet()\n"
    "if not was or not same then\n"
    "  local seen, last = call('HGETALL', P .. 'seen'), 0\n"
    "  for i = 2, #seen, 2 do last = math.max(last, tonumber(seen[i])) end\n"
    "  for i = 1, #seen, 2 do\n"
    "    local lease = tonumber(call('HGET', P .. 'owners', seen[i]) or 0)\n"
    "    if last - tonumber(seen[i + 1]) > lease / 2 then\n"
    "      call('HSET', P .. 'away', seen[i], n)\n"
    "    end\n"
    "  end\n"
    "  n = n + 1\n"
    "end\n"
    "call('HSET', P .. 'history', 'r', ARGV[2], 'n', n)\n"
    "return n\n";

/* Makes a new owner. ARGV: random part of its name, the newest format that it reads,
 * lease. Empty data get this format. If the data have a newer format, the script changes
 * nothing and replies with the format of the data. */
static const char OPEN[] =
    "local call, P = redis.call, KEYS[1]\n"
    "local format = call('GET', P .. 'format')\n"
    "if format and tonumber(format) > tonumber(ARGV[2]) then return format end\n"
    "if not format then call('SET', P .. 'format', ARGV[2]) end\n"
    "call('DEL', P .. 'none')\n"
    "local me = call('INCR', P .. 'owner') .. '.' .. ARGV[1] .. '.' .. ARGV[2]\n"
    "hold(me, ARGV[3])\n"
    "return {me, tonumber(format or ARGV[2])}\n";

/* Claims operations. ARGV: owner, call number, lease, maximum count, ids to acknowledge
 * (operations of the last claim that were passed to the callback). A repeated call
 * replies with the operations of its first try and claims no further operations. Its
 * reply lacks operations that were released in the meantime, and operations that another
 * owner claimed after the lease had lapsed. After each record, the reply says whether
 * Redis may have lost the last entries of the operation's log. */
static const char CLAIM[] =
    "local again, mine = done(), P .. 'claimed:' .. me\n"
    "anyway()\n"
    "if not again then\n"
    "  call('HSET', P .. 'done', me, number)\n"
    "  for i = 5, #ARGV do call('SREM', mine, ARGV[i]) end\n"
    "end\n"
    "local most, got = tonumber(ARGV[4]), {}\n"
    "for _, id in ipairs(call('SMEMBERS', mine)) do\n"
    "  local v = call('HMGET', P .. 'op:' .. id, 'o', 'e')\n"
    "  if v[1] == me and v[2] ~= '1' then\n"
    "    got[#got + 1] = id\n"
    "  else\n"
    "    call('SREM', mine, id)\n"
    "  end\n"
    "end\n"
    "local function from(o)\n"
    "  local key = P .. 'open:' .. o\n"
    "  while #got < most do\n"
    "    local id = call('SRANDMEMBER', key)\n"
    "    if not id then break end\n"
    "    call('SMOVE', key, P .. 'open:' .. me, id)\n"
    "    call('SADD', mine, id)\n"
    "    call('SREM', P .. 'mail:' .. o, id)\n"
    "    if call('EXISTS', P .. 'post:' .. id) == 1 then\n"
    "      call('SADD', P .. 'mail:' .. me, id)\n"
    "    end\n"
    "    call('HSET', P .. 'op:' .. id, 'o', me)\n"
    "    got[#got + 1] = id\n"
    "  end\n"
    "  if o ~= '' and call('SCARD', key) == 0 then forget(o) end\n"
    "  return #got >= most\n"
    "end\n"
    "if #got == 0 and not again then\n"
    "  live()\n"
    "  if not from('') then each_gone(from) end\n"
    "end\n"
    "local out = {}\n"
    "for i, id in ipairs(got) do\n"
    "  local h = call('HGET', P .. 'op:' .. id, 'h')\n"
    "  out[i] = show(id)\n"
    "  out[i][5] = h and h ~= breaks and '1' or '0'\n"
    "end\n"
    "return out\n";

/* Ends a claim: acknowledges the operations that were passed to the callback, and gives
 * the other claimed operations back. ARGV: owner, call number, lease, ids to
 * acknowledge. */
static const char UNCLAIM[] =
    "if done() then return 0 end\n"
    "anyway()\n"
    "call('HSET', P .. 'done', me, number)\n"
    "for i = 4, #ARGV do call('SREM', P .. 'claimed:' .. me, ARGV[i]) end\n"
    "local rest = call('SMEMBERS', P .. 'claimed:' .. me)\n"
    "for _, id in ipairs(rest) do\n"
    "  if call('SMOVE', P .. 'open:' .. me, P .. 'open:', id) == 1 then\n"
    "    call('HSET', P .. 'op:' .. id, 'o', '')\n"
    "    call('SREM', P .. 'mail:' .. me, id)\n"
    "  end\n"
    "end\n"
    "call('UNLINK', P .. 'claimed:' .. me)\n"
    "if #rest > 0 then call('PUBLISH', P .. 'all', 'O' .. me) end\n"
    "return 0\n";

/* Purges operations. ARGV: owner, call number, lease, now, maximum work (1 for each
 * operation and each log entry). The reply has the number of purged operations, and the
 * time at which the next operation is due. */
static const char PURGE[] =
    "local left, n = tonumber(ARGV[5]), 0\n"
    "local upto = '[' .. ARGV[4] .. string.rep('\\255', 17)\n"
    "anyway()\n"
    "while left > 0 do\n"
    "  local m = call('ZRANGEBYLEX', P .. 'purge', '-', upto, 'LIMIT', 0, 1)[1]\n"
    "  if not m then break end\n"
    "  local id = m:sub(9)\n"
    "  left = left - 1 - call('XLEN', P .. 'log:' .. id)\n"
    "    - (call('HGET', P .. 'op:' .. id, 'x') or 0)\n"
    "  grew(id)\n"
    "  remove(id)\n"
    "  call('ZREM', P .. 'purge', m)\n"
    "  n = n + 1\n"
    "end\n"
    "tell()\n"
    "local next = call('ZRANGE', P .. 'purge', 0, 0)[1]\n"
    "return {n, next and next:sub(1, 8) or ''}\n";

/* ---- news ---- */

/* Starts or stops following operations. ARGV: owner, call number, lease, "1" (start) or
 * "0" (stop), ids. */
static const char FOLLOW[] = "local status = 0\n"
                             "for i = 5, #ARGV do\n"
                             "  local id = ARGV[i]\n"
                             "  anyway()\n"
                             "  if ARGV[4] == '0' then\n"
                             "    call('SREM', P .. 'fol:' .. id, me)\n"
                             "  elseif call('EXISTS', P .. 'op:' .. id) == 1 then\n"
                             "    call('SADD', P .. 'fol:' .. id, me)\n"
                             "    call('HSET', P .. 'op:' .. id, 'f', '1')\n"
                             "  else\n"
                             "    status = -8\n"
                             "  end\n"
                             "end\n"
                             "return status\n";

/* Stores a forwarded command. ARGV: owner, call number, lease, id, data, maximum number
 * of waiting commands. The reply is 1 when the caller itself owns the operation. */
static const char POST[] =
    "local id = ARGV[4]\n"
    "if done() then return 1 end\n"
    "local v = call('HMGET', P .. 'op:' .. id, 'o', 'e')\n"
    "if not v[1] then return -8 end\n"
    "if v[2] == '1' then return -11 end\n"
    "if call('LLEN', P .. 'post:' .. id) >= tonumber(ARGV[6]) then return -12 end\n"
    "began()\n"
    "call('RPUSH', P .. 'post:' .. id, ARGV[5])\n"
    "call('HINCRBY', P .. 'op:' .. id, 'm', 1)\n"
    "call('SADD', P .. 'mail:' .. v[1], id)\n"
    "if v[1] == me then return 1 end\n"
    "call('PUBLISH', P .. 'news:' .. v[1], 'L' .. id)\n"
    "return 0\n";

/* Reads the forwarded commands of an operation. ARGV: owner, id. The reply has the number
 * of the last command and all waiting commands; it is -8 when this owner does not own the
 * operation. */
static const char COMMANDS[] =
    "local call, P = redis.call, KEYS[1]\n"
    "local v = call('HMGET', P .. 'op:' .. ARGV[2], 'o', 'm', 'e')\n"
    "if v[1] ~= ARGV[1] or v[3] == '1' then return -8 end\n"
    "return {tonumber(v[2] or 0), call('LRANGE', P .. 'post:' .. ARGV[2], 0, -1)}\n";

/* Prolongs the lease of an owner. ARGV: owner, call number, lease, master_replid of the
 * server when the connection was made, the newest format that the owner reads, whether
 * the data get this format when no older owner lives. The reply has the time at which the
 * lease lapsed last (0 = never), whether operations may wait to be claimed, the number of
 * operations, the format of the data (0 = unknown), and whether an older owner lives. If
 * the server has another master_replid now, the script does nothing and replies -1. */
static const char BEAT[] =
    "local told, text = pcall(call, 'INFO', 'replication')\n"
    "local line = told and tostring(text):match('master_replid:(%x+)')\n"
    "if line and line ~= ARGV[4] then return {-1, 0, 0} end\n"
    "anyway()\n"
    "live()\n"
    "local orphans = call('EXISTS', P .. 'open:')\n"
    "hold(me, lease)\n"
    "each_gone(function(o)\n"
    "  if call('EXISTS', P .. 'open:' .. o) == 1 then orphans = 1 else forget(o) end\n"
    "end)\n"
    "local format, newest = tonumber(call('GET', P .. 'format') or 0), "
    "tonumber(ARGV[5])\n"
    "local older = 0\n"
    "if format < newest then\n"
    "  local all = call('HGETALL', P .. 'owners')\n"
    "  for i = 1, #all, 2 do\n"
    "    local reads = tonumber(all[i]:match('^%d+%.%x+%.(%d+)$') or 1)\n"
    "    if reads < newest and not gone(all[i], all[i + 1]) then older = 1 end\n"
    "  end\n"
    "  if older == 0 and ARGV[6] == '1' then\n"
    "    call('SET', P .. 'format', newest)\n"
    "    format = newest\n"
    "  end\n"
    "end\n"
    "local lapsed = tonumber(call('HGET', P .. 'lapsed', me) or 0)\n"
    "return {lapsed, orphans, call('HLEN', P .. 'task'), format, older}\n";

/* Closes an owner. ARGV: owner, call number, lease. */
static const char BYE[] = "anyway()\n"
                          "call('DEL', P .. 'lease:' .. me)\n"
                          "if call('EXISTS', P .. 'open:' .. me) == 0 then\n"
                          "  forget(me)\n"
                          "else\n"
                          "  call('HSET', P .. 'owners', me, '0')\n"
                          "  call('PUBLISH', P .. 'all', 'O' .. me)\n"
                          "end\n"
                          "return 0\n";

#define PARTS_MAX 8

static const char *const SCRIPTS[SGI_REDIS_SCRIPTS][PARTS_MAX + 1] = {
    [SGI_REDIS_HISTORY] = {HISTORY},
    [SGI_REDIS_OPEN] = {LEASE, OPEN},
    [SGI_REDIS_COMMIT] = {sgi_redis_lua_haste, LEASE, LIFE, TELL, RECORD,
                          sgi_redis_lua_check, sgi_redis_lua_room, sgi_redis_lua_apply,
                          sgi_redis_lua_commit},
    [SGI_REDIS_FIND] = {SHOW, FIND},
    [SGI_REDIS_LIST] = {SHOW, LIST},
    [SGI_REDIS_CLAIM] = {SHOW, LEASE, LIFE, GONE, CLAIM},
    [SGI_REDIS_UNCLAIM] = {LEASE, LIFE, UNCLAIM},
    [SGI_REDIS_PURGE] = {LEASE, LIFE, TELL, RECORD, PURGE},
    [SGI_REDIS_FOLLOW] = {LEASE, LIFE, FOLLOW},
    [SGI_REDIS_POST] = {LEASE, LIFE, POST},
    [SGI_REDIS_COMMANDS] = {COMMANDS},
    [SGI_REDIS_BEAT] = {LEASE, LIFE, GONE, BEAT},
    [SGI_REDIS_BYE] = {LEASE, LIFE, GONE, BYE},
};

void sgi_redis_scripts_add(sgi_buf *commands)
{
    for (int i = 0; i < SGI_REDIS_SCRIPTS; i++) {
        size_t len = 0;
        for (int part = 0; part <= PARTS_MAX && SCRIPTS[i][part]; part++)
            len += strlen(SCRIPTS[i][part]);
        sgi_buf_add_lit(commands, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$");
        sgi_buf_add_uint(commands, len);
        sgi_buf_add_lit(commands, "\r\n");
        for (int part = 0; part <= PARTS_MAX && SCRIPTS[i][part]; part++)
            sgi_buf_add(commands, SCRIPTS[i][part], strlen(SCRIPTS[i][part]));
        sgi_buf_add_lit(commands, "\r\n");
    }
}
