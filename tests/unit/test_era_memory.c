/* Remembered endpoints: the latest ones, up to a limit, whose servers used a handshake
 * era. */
#include "engine/era_memory.h"

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void a_place_is_remembered_and_forgotten(void **state)
{
    (void)state;
    sgi_era_memory places = {0};
    assert_false(sgi_era_memory_is_legacy(&places, 7));
    sgi_era_memory_note(&places, 7, false);
    assert_false(sgi_era_memory_is_legacy(&places, 7));
    sgi_era_memory_note(&places, 7, true);
    sgi_era_memory_note(&places, 8, true);
    sgi_era_memory_note(&places, 7, true);
    assert_true(sgi_era_memory_is_legacy(&places, 7));
    sgi_era_memory_note(&places, 7, false);
    assert_false(sgi_era_memory_is_legacy(&places, 7));
    assert_true(sgi_era_memory_is_legacy(&places, 8));
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    sgi_era_memory places = {0};
    for (uint64_t place = 1; place <= SGI_ENDPOINTS_MAX; place++)
        sgi_era_memory_note(&places, place, true);
    sgi_era_memory_note(&places, 1, true); /* the first endpoint is noted again */
    sgi_era_memory_note(&places, 1000, true);
    assert_true(sgi_era_memory_is_legacy(&places, 1));
    assert_false(sgi_era_memory_is_legacy(&places, 2));
    for (uint64_t place = 3; place <= SGI_ENDPOINTS_MAX; place++)
        assert_true(sgi_era_memory_is_legacy(&places, place));
    for (uint64_t place = 1; place <= 1000; place++)
        sgi_era_memory_note(&places, place, false);
    for (size_t i = 0; i < SGI_ENDPOINTS_MAX; i++)
        assert_true(places.legacy[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_remembered_and_forgotten),
        cmocka_unit_test(the_oldest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
