/* The negotiation matrix, a second copy of core/docs/requirements.md 5.3, R-C-14 to
 * R-C-17: every version with every set of declarations and every set of switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/negotiate.h"

#define ALL_SWITCHES 256u
#define ALL_SAYINGS 64u

/* One cell of 5.3: the dialects that a declaration enables in these versions. */
typedef struct cell {
    sgi_version from, upto;
    uint32_t says; /* all that the client must have declared */
    uint32_t set;
} cell;

#define IN(version) SGI_VERSION_##version, SGI_VERSION_##version

static const cell matrix[] = {
    {IN(2025_11_25), SGI_SAYS_TASK_PARAM, SGI_DIALECT_L},
    {IN(2025_11_25), SGI_SAYS_TASK_PARAM | SGI_SAYS_RESPONSE_MODES, SGI_DIALECT_S},
    {SGI_VERSION_2024_11_05, SGI_VERSION_DRAFT_2026_V1, SGI_SAYS_ALLOW_PARTIAL,
     SGI_DIALECT_P},
    {SGI_VERSION_2024_11_05, SGI_VERSION_2025_11_25, SGI_SAYS_RESUMABLE, SGI_DIALECT_Z},
    {IN(DRAFT_2026_V1), 0, SGI_DIALECT_D},
    {IN(2026_07_28), SGI_SAYS_TASKS_EXTENSION, SGI_DIALECT_X | SGI_DIALECT_E},
    {IN(2026_07_28), SGI_SAYS_PARTIAL_RESULTS, SGI_DIALECT_PN},
};

#define MODERN (SGI_DIALECT_X | SGI_DIALECT_E | SGI_DIALECT_PN)

static uint32_t expected(sgi_version version, uint32_t says, uint32_t enabled)
{
    uint32_t set = 0;
    for (const cell *c = matrix; c < matrix + sizeof matrix / sizeof *matrix; c++)
        if (version >= c->from && version <= c->upto && (says & c->says) == c->says)
            set |= c->set;
    set &= enabled;
    if (set &
        (SGI_DIALECT_L | SGI_DIALECT_S)) /* "P (if no task)": a task was requested */
        set &= ~(uint32_t)SGI_DIALECT_P;
    if (!(set & SGI_DIALECT_X)) /* "X, and E for its stream" */
        set &= ~(uint32_t)SGI_DIALECT_E;
    return set;
}

static void the_whole_matrix(void **state)
{
    (void)state;
    for (int v = SGI_VERSION_UNKNOWN; v <= SGI_VERSION_2026_07_28; v++)
        for (uint32_t says = 0; says < ALL_SAYINGS; says++)
            for (uint32_t enabled = 0; enabled < ALL_SWITCHES; enabled++)
                assert_int_equal(sgi_negotiate_dialects((sgi_version)v, says, enabled),
                                 expected((sgi_version)v, says, enabled));
}

static void with_all_switches_off_nothing_is_admitted(void **state)
{
    (void)state;
    for (int v = SGI_VERSION_UNKNOWN; v <= SGI_VERSION_2026_07_28; v++)
        assert_int_equal(sgi_negotiate_dialects((sgi_version)v, ALL_SAYINGS - 1, 0), 0);
}

static void a_client_that_says_nothing_gets_the_plain_protocol(void **state)
{
    (void)state;
    uint32_t all_but_d = (ALL_SWITCHES - 1) & ~(uint32_t)SGI_DIALECT_D;
    for (int v = SGI_VERSION_UNKNOWN; v <= SGI_VERSION_2026_07_28; v++)
        assert_int_equal(sgi_negotiate_dialects((sgi_version)v, 0, all_but_d), 0);
}

static void the_modern_era_knows_nothing_of_the_handshake_dialects(void **state)
{
    (void)state;
    uint32_t set =
        sgi_negotiate_dialects(SGI_VERSION_2026_07_28, ALL_SAYINGS - 1, ALL_SWITCHES - 1);
    assert_int_equal(set, MODERN);
}

/* Who makes a call a task: the server (D and X, if the client declared that it can handle
 * tasks) or the client (L). A tool that must be a task and cannot is refused with the
 * error of the era. */
static void decides_by_policy_and_dialect(void **state)
{
    (void)state;
    static const struct {
        sgi_version version;
        uint32_t dialects;
        sgi_verdict never, may, must;
    } rows[] = {
        {SGI_VERSION_2026_07_28, 0, SGI_VERDICT_PLAIN, SGI_VERDICT_PLAIN,
         SGI_VERDICT_MISSING_CAPABILITY},
        {SGI_VERSION_2026_07_28, SGI_DIALECT_PN, SGI_VERDICT_PLAIN, SGI_VERDICT_PLAIN,
         SGI_VERDICT_MISSING_CAPABILITY},
        {SGI_VERSION_2026_07_28, SGI_DIALECT_X, SGI_VERDICT_PLAIN, SGI_VERDICT_TASK,
         SGI_VERDICT_TASK},
        {SGI_VERSION_2026_07_28, MODERN, SGI_VERDICT_PLAIN, SGI_VERDICT_TASK,
         SGI_VERDICT_TASK},
        {SGI_VERSION_2025_11_25, 0, SGI_VERDICT_PLAIN, SGI_VERDICT_PLAIN,
         SGI_VERDICT_METHOD_NOT_FOUND},
        {SGI_VERSION_2025_11_25, SGI_DIALECT_L, SGI_VERDICT_METHOD_NOT_FOUND,
         SGI_VERDICT_TASK, SGI_VERDICT_TASK},
        {SGI_VERSION_2025_11_25, SGI_DIALECT_L | SGI_DIALECT_S,
         SGI_VERDICT_METHOD_NOT_FOUND, SGI_VERDICT_TASK, SGI_VERDICT_TASK},
        {SGI_VERSION_2025_11_25, SGI_DIALECT_P | SGI_DIALECT_Z, SGI_VERDICT_PLAIN,
         SGI_VERDICT_PLAIN, SGI_VERDICT_METHOD_NOT_FOUND},
        {SGI_VERSION_2025_06_18, SGI_DIALECT_P, SGI_VERDICT_PLAIN, SGI_VERDICT_PLAIN,
         SGI_VERDICT_METHOD_NOT_FOUND},
        {SGI_VERSION_2024_11_05, 0, SGI_VERDICT_PLAIN, SGI_VERDICT_PLAIN,
         SGI_VERDICT_METHOD_NOT_FOUND},
        {SGI_VERSION_DRAFT_2026_V1, SGI_DIALECT_D, SGI_VERDICT_PLAIN, SGI_VERDICT_TASK,
         SGI_VERDICT_TASK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_version v = rows[i].version;
        uint32_t set = rows[i].dialects;
        assert_int_equal(sgi_decide_task(v, set, SEGUE_TASK_NEVER), rows[i].never);
        assert_int_equal(sgi_decide_task(v, set, SEGUE_TASK_MAY), rows[i].may);
        assert_int_equal(sgi_decide_task(v, set, SEGUE_TASK_MUST), rows[i].must);
    }
}

static void versions_are_known_by_their_exact_names(void **state)
{
    (void)state;
    static const char *const names[] = {"2024-11-05", "2025-03-26",    "2025-06-18",
                                        "2025-11-25", "DRAFT-2026-v1", "2026-07-28"};
    static const char *const others[] = {"",           "2025-11-2",   "2025-11-255",
                                         "2026-07-29", "2023-01-01",  "draft-2026-v1",
                                         "1.0",        " 2025-11-25", "DRAFT-2026-v2"};
    for (int i = 0; i < 6; i++) {
        sgi_version v = sgi_version_parse(sgi_str_of(names[i]));
        assert_int_equal(v, SGI_VERSION_2024_11_05 + i);
        assert_string_equal(sgi_version_name(v), names[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(sgi_version_parse(sgi_str_of(others[i])), SGI_VERSION_UNKNOWN);
    assert_int_equal(sgi_version_parse((sgi_str){0}), SGI_VERSION_UNKNOWN);
}

/* The facts of the versions, oldest first: 1 = the version has the fact. The first column
 * is for a version that is not known yet. */
static void the_facts_of_each_version(void **state)
{
    static const struct {
        const char *have;
        size_t fact;
    } rows[] = {
#define ROW(have, member) {have, offsetof(sgi_version_facts, member)}
        ROW("0111100", has_handshake),      ROW("0000001", is_stateless),
        ROW("0010000", has_batches),        ROW("1111000", refuses_arguments),
        ROW("0000111", primes_streams),     ROW("0000100", has_tasks_both_ways),
        ROW("0000011", has_rounds),         ROW("0000001", has_result_types),
        ROW("0000001", has_cache_hints),    ROW("0000001", has_any_output),
        ROW("1111110", has_subscribe),      ROW("0000001", has_extensions),
        ROW("0000001", cancels_by_closing), ROW("0000001", has_log_level_in_meta),
#undef ROW
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int v = SGI_VERSION_UNKNOWN; v <= SGI_VERSION_2026_07_28; v++) {
            const char *facts = (const char *)sgi_facts((sgi_version)v);
            const bool *has = (const bool *)(facts + rows[i].fact);
            assert_int_equal(*has, rows[i].have[v] == '1');
        }
    for (int v = SGI_VERSION_UNKNOWN; v <= SGI_VERSION_2026_07_28; v++) {
        const sgi_version_facts *facts = sgi_facts((sgi_version)v);
        assert_int_equal(facts->not_found_code, facts->is_stateless ? -32602 : -32002);
        assert_int_equal(facts->header_repeats, facts->is_stateless ? SGI_REPEATS_ALL
                                                : v == SGI_VERSION_DRAFT_2026_V1
                                                    ? SGI_REPEATS_TASK_IDS
                                                    : SGI_REPEATS_NOTHING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_matrix),
        cmocka_unit_test(with_all_switches_off_nothing_is_admitted),
        cmocka_unit_test(a_client_that_says_nothing_gets_the_plain_protocol),
        cmocka_unit_test(the_modern_era_knows_nothing_of_the_handshake_dialects),
        cmocka_unit_test(decides_by_policy_and_dialect),
        cmocka_unit_test(versions_are_known_by_their_exact_names),
        cmocka_unit_test(the_facts_of_each_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
