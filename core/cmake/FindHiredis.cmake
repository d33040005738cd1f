# Finds hiredis: the target Hiredis::Hiredis, and the variable Hiredis_TLS when hiredis
# has TLS (hiredis_ssl, from 1.0 on). The pkg-config file of hiredis says whether its
# headers have a directory of their own. This module is installed beside
# SegueConfig.cmake, because users of the static library need it too.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(HIREDIS_PC QUIET hiredis)
    pkg_check_modules(HIREDIS_TLS_PC QUIET hiredis_ssl)
endif()
find_path(HIREDIS_INCLUDE_DIR hiredis/hiredis.h HINTS ${HIREDIS_PC_INCLUDE_DIRS}
    PATH_SUFFIXES .. )
find_library(HIREDIS_LIBRARY hiredis HINTS ${HIREDIS_PC_LIBRARY_DIRS})
mark_as_advanced(HIREDIS_INCLUDE_DIR HIREDIS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hiredis
    REQUIRED_VARS HIREDIS_LIBRARY HIREDIS_INCLUDE_DIR VERSION_VAR HIREDIS_PC_VERSION)

set(Hiredis_TLS OFF)
if(HIREDIS_TLS_PC_FOUND AND EXISTS ${HIREDIS_INCLUDE_DIR}/hiredis/hiredis_ssl.h)
    find_library(HIREDIS_TLS_LIBRARY hiredis_ssl HINTS ${HIREDIS_TLS_PC_LIBRARY_DIRS})
    mark_as_advanced(HIREDIS_TLS_LIBRARY)
    if(HIREDIS_TLS_LIBRARY)
        set(Hiredis_TLS ON)
    endif()
endif()

if(Hiredis_FOUND AND NOT TARGET Hiredis::Hiredis)
    add_library(Hiredis::Hiredis UNKNOWN IMPORTED)
    set_target_properties(Hiredis::Hiredis PROPERTIES
        IMPORTED_LOCATION ${HIREDIS_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${HIREDIS_INCLUDE_DIR})
    if(Hiredis_TLS)
        set_target_properties(Hiredis::Hiredis PROPERTIES
            INTERFACE_LINK_LIBRARIES ${HIREDIS_TLS_LIBRARY})
    endif()
endif()
