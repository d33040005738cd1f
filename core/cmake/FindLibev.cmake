# Finds libev: the target Libev::Libev. Distributions ship libev without a pkg-config
# file. This module is installed beside SegueConfig.cmake, because users of the static
# library need it too.
find_path(LIBEV_INCLUDE_DIR ev.h)
find_library(LIBEV_LIBRARY ev)
mark_as_advanced(LIBEV_INCLUDE_DIR LIBEV_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libev REQUIRED_VARS LIBEV_LIBRARY LIBEV_INCLUDE_DIR)

if(Libev_FOUND AND NOT TARGET Libev::Libev)
    add_library(Libev::Libev UNKNOWN IMPORTED)
    set_target_properties(Libev::Libev PROPERTIES
        IMPORTED_LOCATION ${LIBEV_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${LIBEV_INCLUDE_DIR})
endif()
