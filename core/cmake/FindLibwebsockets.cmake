# Finds libwebsockets: the target Libwebsockets::Libwebsockets. The CMake package of
# libwebsockets is not used: it needs the development files of every event library that
# libwebsockets was built with, and Segue uses only one of these. This module is installed
# beside SegueConfig.cmake, because users of the static library need it too.
find_path(LIBWEBSOCKETS_INCLUDE_DIR libwebsockets.h)
find_library(LIBWEBSOCKETS_LIBRARY websockets)
mark_as_advanced(LIBWEBSOCKETS_INCLUDE_DIR LIBWEBSOCKETS_LIBRARY)

if(LIBWEBSOCKETS_INCLUDE_DIR)
    file(STRINGS ${LIBWEBSOCKETS_INCLUDE_DIR}/lws_config.h libwebsockets_version
        REGEX "^#define LWS_LIBRARY_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX MATCHALL "[0-9]+" libwebsockets_version "${libwebsockets_version}")
    list(JOIN libwebsockets_version . Libwebsockets_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libwebsockets
    REQUIRED_VARS LIBWEBSOCKETS_LIBRARY LIBWEBSOCKETS_INCLUDE_DIR
    VERSION_VAR Libwebsockets_VERSION)

if(Libwebsockets_FOUND AND NOT TARGET Libwebsockets::Libwebsockets)
    add_library(Libwebsockets::Libwebsockets UNKNOWN IMPORTED)
    set_target_properties(Libwebsockets::Libwebsockets PROPERTIES
        IMPORTED_LOCATION ${LIBWEBSOCKETS_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${LIBWEBSOCKETS_INCLUDE_DIR})
endif()
