# The parts of the library that a build may leave out. Each part has a CMake option,
# files that are compiled only with the part, a file absent_NAME.c that replaces these
# files, and libraries that only this part links. Everything else in core is in each
# build.
include(CMakeDependentOption)

option(SEGUE_HTTP "Streamable HTTP, client and server (libwebsockets, curl, libssl)" ON)
cmake_dependent_option(SEGUE_OAUTH
    "The authorization flows of the client over HTTP" ON SEGUE_HTTP OFF)
option(SEGUE_SQLITE "The store in a file (SQLite)" ON)
option(SEGUE_REDIS "The store that servers share (hiredis)" ON)
option(SEGUE_POSTGRES "The store in a PostgreSQL database (libpq)" ON)

option(SEGUE_METRICS "The metrics of servers, for Prometheus" ON)
option(SEGUE_BOARD "The task board, a web page of a listener" ON)

option(SEGUE_BUNDLED "Contain the libraries that Segue uses (core/deps)" OFF)
if(SEGUE_BUNDLED)
    find_package(Threads REQUIRED)
    include(bundled)
endif()

# Finds a package, or notes that it is missing; in a bundled build, its targets exist
# already.
include(missing)
set(segue_missing)
macro(find_part_package package)
    if(NOT SEGUE_BUNDLED)
        string(REPLACE " " ";" arguments ${package})
        find_package(${arguments})
        list(GET arguments 0 package_name)
        if(NOT ${package_name}_FOUND)
            list(APPEND segue_missing ${package_name})
        endif()
    endif()
endmacro()

file(GLOB segue_sources CONFIGURE_DEPENDS
    core/base/*.c core/wire/*.c core/engine/*.c core/engine/*/*.c
    core/engine/*/*/*.c
    core/store/*.c core/runtime/*.c core/transport/*.c core/api/*.c core/easy/*.c
    core/inspect/*.c core/board/*.c)
list(FILTER segue_sources EXCLUDE REGEX "/absent_[a-z]+[.]c$")
if(SEGUE_BUNDLED)
    list(APPEND segue_sources ${bundled_sources})
endif()
set(segue_left_out)   # names of the parts that are off
set(segue_packages)   # arguments of find_package
set(segue_libraries)  # targets that are linked
set(segue_link_flags) # the libraries as link flags, for pkg-config
set(segue_late_libraries) # targets that are loaded when they are needed

# Declares a part: part(NAME FILES pattern... [PACKAGES ...] [LIBRARIES ...] [FLAGS ...]
# [LATE_PACKAGES ...] [LATE_LIBRARIES ...]). Of late libraries a build needs the headers
# only, because they are loaded when they are needed (core/base/late_library.h). A bundled
# build links them.
macro(part name)
    cmake_parse_arguments(part "" ""
        "FILES;PACKAGES;LIBRARIES;FLAGS;LATE_PACKAGES;LATE_LIBRARIES" ${ARGN})
    if(SEGUE_BUNDLED)
        list(APPEND part_LIBRARIES ${part_LATE_LIBRARIES})
    endif()
    file(GLOB segue_files_${name} CONFIGURE_DEPENDS ${part_FILES})
    string(TOLOWER ${name} part_lower)
    file(GLOB segue_absent_${name} core/*/absent_${part_lower}.c
        core/*/*/absent_${part_lower}.c)
    set(segue_libraries_${name} ${part_LIBRARIES})
    if(SEGUE_${name})
        foreach(package IN LISTS part_PACKAGES part_LATE_PACKAGES)
            find_part_package(${package})
        endforeach()
        list(APPEND segue_packages ${part_PACKAGES})
        list(APPEND segue_libraries ${part_LIBRARIES})
        list(APPEND segue_link_flags ${part_FLAGS})
        list(APPEND segue_late_libraries ${part_LATE_LIBRARIES})
    else()
        list(APPEND segue_left_out ${name})
        list(REMOVE_ITEM segue_sources ${segue_files_${name}})
        if(NOT "${name}" STREQUAL "OAUTH" OR SEGUE_HTTP) # OAuth files need HTTP
            list(APPEND segue_sources ${segue_absent_${name}})
        endif()
    endif()
endmacro()

part(HTTP
    FILES core/api/api_http*.c core/engine/oauth/*.c core/transport/acceptor.c
        core/transport/address.c core/transport/bearer*.c core/transport/fetch*.c
        core/transport/header_hook.c core/transport/http_*.c core/transport/link*.c
        core/transport/listen_socket.c core/transport/resumptions.c
        core/transport/socket_guest.c core/transport/tls.c
        core/transport/wake_descriptor.c
    PACKAGES "Libwebsockets 4.1" "OpenSSL 3.0 COMPONENTS SSL"
    LIBRARIES Libwebsockets::Libwebsockets OpenSSL::SSL
    FLAGS -lwebsockets -lssl
    LATE_PACKAGES "CURL 7.74" LATE_LIBRARIES CURL::libcurl)
part(OAUTH
    FILES core/engine/oauth/*.c core/transport/http_auth.c
        core/transport/http_client_exchange_token.c)
part(SQLITE
    FILES core/store/sqlite*.c
    PACKAGES SQLite3 LIBRARIES SQLite::SQLite3 FLAGS -lsqlite3)
part(REDIS
    FILES core/store/redis*.c
    PACKAGES "Hiredis 0.14" LIBRARIES Hiredis::Hiredis FLAGS -lhiredis)
if(SEGUE_REDIS AND Hiredis_TLS)
    find_part_package("OpenSSL 3.0 COMPONENTS SSL")
    list(APPEND segue_packages "OpenSSL 3.0 COMPONENTS SSL")
    list(APPEND segue_libraries OpenSSL::SSL)
    list(APPEND segue_libraries_REDIS OpenSSL::SSL) # redis_tls.c calls libssl
    list(APPEND segue_link_flags -lhiredis_ssl -lssl)
endif()
part(POSTGRES
    FILES core/store/postgres*.c
    LATE_PACKAGES "PostgreSQL 14" LATE_LIBRARIES PostgreSQL::PostgreSQL)
part(METRICS
    FILES core/engine/server/metrics*.c)

part(BOARD
    FILES core/board/board*.c)
if(SEGUE_BOARD) # the page is a part of the library
    set(segue_page ${PROJECT_BINARY_DIR}/core/board/board_files.c)
    file(GLOB segue_page_files CONFIGURE_DEPENDS core/board/page/*.html
        core/board/page/*.css core/board/page/*.js)
    set(segue_page_script ${PROJECT_SOURCE_DIR}/core/cmake/embed.cmake)
    add_custom_command(OUTPUT ${segue_page}
        COMMAND ${CMAKE_COMMAND} -D OUT=${segue_page} -D "FILES=${segue_page_files}"
            -P ${segue_page_script}
        DEPENDS ${segue_page_files} ${segue_page_script} VERBATIM)
    list(APPEND segue_sources ${segue_page})
    list(APPEND segue_files_BOARD ${segue_page})
endif()

# The packages that each build links.
foreach(package "Threads" "Libev" "OpenSSL 3.0 COMPONENTS Crypto")
    find_part_package(${package})
    list(APPEND segue_packages ${package})
endforeach()
if(segue_missing)
    list(REMOVE_DUPLICATES segue_missing)
    set(missing_advice "With SEGUE_BUNDLED=ON the build contains these libraries, and \
makes them from their sources. SEGUE_HTTP, SEGUE_SQLITE, SEGUE_REDIS and SEGUE_POSTGRES \
leave a part out when they are OFF.")
    refuse_missing(${segue_missing})
endif()
list(APPEND segue_libraries Libev::Libev OpenSSL::Crypto Threads::Threads m
    ${CMAKE_DL_LIBS})
list(REMOVE_DUPLICATES segue_packages)
list(REMOVE_DUPLICATES segue_libraries)
list(APPEND segue_link_flags -lcrypto -lev -pthread -lm -ldl)
