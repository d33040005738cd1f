# The libraries of a bundled build (SEGUE_BUNDLED). The project core/deps builds them when
# the library is configured, as static libraries in SEGUE_BUNDLED_DIR. A directory that
# was built from the same files by the same compiler is used as it is. A build that was
# interrupted goes on. This file defines the targets that the parts link, as the modules
# of find_package do.
set(SEGUE_BUNDLED_DIR ${PROJECT_BINARY_DIR}/deps CACHE PATH
    "Directory of the libraries of a bundled build; several build trees can share it")
set(SEGUE_ARCHIVES "" CACHE PATH "Folder that is searched for archives first")

set(bundled_prefix ${SEGUE_BUNDLED_DIR}/prefix)
set(bundled_begun ${SEGUE_BUNDLED_DIR}/begun)
set(bundled_built ${SEGUE_BUNDLED_DIR}/complete)
set(bundled_key "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${SEGUE_TARGET}\n")
file(GLOB bundled_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/deps/*)
list(FILTER bundled_files EXCLUDE REGEX "[.]c$") # a part of Segue, as other sources are
foreach(file IN LISTS bundled_files)
    file(SHA256 ${file} hash)
    cmake_path(GET file FILENAME name)
    string(APPEND bundled_key "${name} ${hash}\n")
endforeach()

function(build_bundled)
    set(built "")
    set(begun "")
    foreach(name built begun)
        if(EXISTS ${bundled_${name}})
            file(READ ${bundled_${name}} ${name})
        endif()
    endforeach()
    if(built STREQUAL bundled_key)
        return()
    endif()
    message(STATUS "Building the bundled libraries in ${SEGUE_BUNDLED_DIR}")
    set(arguments -DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
        -DCMAKE_INSTALL_PREFIX=${bundled_prefix}
        -DSEGUE_ARCHIVES=${SEGUE_ARCHIVES})
    if(CMAKE_TOOLCHAIN_FILE)
        list(APPEND arguments -DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE}
            -DSEGUE_TARGET=${SEGUE_TARGET} -DSEGUE_ZIG=${SEGUE_ZIG}
            -DSEGUE_TOOLS=${SEGUE_TOOLS})
    else()
        list(APPEND arguments -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER})
    endif()
    set(place "${SEGUE_BUNDLED_DIR}\n${CMAKE_C_COMPILER} ${SEGUE_ZIG}\n")
    if(NOT begun STREQUAL "${place}${bundled_key}")
        file(REMOVE_RECURSE ${bundled_built} ${bundled_prefix} ${SEGUE_BUNDLED_DIR}/build)
        file(WRITE ${bundled_begun} "${place}${bundled_key}")
    endif()
    file(MAKE_DIRECTORY ${bundled_prefix}/lib ${bundled_prefix}/include)
    # SQLite's configure refuses a compiler for C++ that is named and not there, as Python
    # names one. Nothing here is C++.
    unset(ENV{CXX})
    execute_process(COMMAND ${CMAKE_COMMAND} -G ${CMAKE_GENERATOR}
            -S ${PROJECT_SOURCE_DIR}/core/deps -B ${SEGUE_BUNDLED_DIR}/build ${arguments}
        COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${SEGUE_BUNDLED_DIR}/build
        COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE ${bundled_built} "${bundled_key}")
endfunction()
build_bundled()

# musl has no <sys/queue.h>. zig has the one of glibc, which fits every compiler.
if(SEGUE_TARGET MATCHES "musl")
    cmake_path(GET SEGUE_ZIG PARENT_PATH zig)
    file(COPY ${zig}/lib/libc/include/generic-glibc/sys/queue.h
        DESTINATION ${SEGUE_BUNDLED_DIR}/include/sys)
    include_directories(SYSTEM ${SEGUE_BUNDLED_DIR}/include)
endif()

# zig names the C library of musl libc.so. Alpine and auditwheel name it as below, and
# every musl takes each name that begins so for its own. segue_libc has no code: it is
# linked for its name.
set(segue_libc)
if(SEGUE_TARGET MATCHES "musl")
    set(libc_name libc.musl-${CMAKE_SYSTEM_PROCESSOR}.so.1)
    set(segue_libc ${SEGUE_BUNDLED_DIR}/${libc_name})
    set(libc_settings -DPTR64 -DARCH_${CMAKE_SYSTEM_PROCESSOR})
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        list(APPEND libc_settings -DFAMILY_x86)
    endif()
    execute_process(COMMAND ${CMAKE_C_COMPILER} -shared -nostdlib ${libc_settings}
            -Wl,-soname,${libc_name} -o ${segue_libc} ${zig}/lib/libc/musl/libc.S
        COMMAND_ERROR_IS_FATAL ANY)
    string(APPEND CMAKE_SHARED_LINKER_FLAGS " ${segue_libc}")
    string(APPEND CMAKE_MODULE_LINKER_FLAGS " ${segue_libc}")
endif()

# bundled(TARGET FILE [LIBRARY...]): the static library FILE, and what it links.
function(bundled target file)
    add_library(${target} STATIC IMPORTED)
    set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION ${bundled_prefix}/lib/${file}
        INTERFACE_INCLUDE_DIRECTORIES ${bundled_prefix}/include
        INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

set(system Threads::Threads ${CMAKE_DL_LIBS})
bundled(OpenSSL::Crypto libcrypto.a ${system})
bundled(OpenSSL::SSL libssl.a OpenSSL::Crypto)
bundled(Libev::Libev libev.a m)
bundled(Libwebsockets::Libwebsockets libwebsockets.a Libev::Libev ${system})
bundled(Bundled::nghttp2 libnghttp2.a)
bundled(CURL::libcurl libcurl.a Bundled::nghttp2 OpenSSL::SSL ${system})
bundled(SQLite::SQLite3 libsqlite3.a m ${system})
bundled(Bundled::hiredis libhiredis.a)
bundled(Hiredis::Hiredis libhiredis_ssl.a Bundled::hiredis OpenSSL::SSL)
bundled(Bundled::pgport libpgport_shlib.a)
bundled(Bundled::pgcommon libpgcommon_shlib.a Bundled::pgport OpenSSL::Crypto m)
bundled(PostgreSQL::PostgreSQL libpq.a Bundled::pgcommon OpenSSL::SSL ${system})
set(Hiredis_TLS ON)
unset(system)

# Hardened, as packages of Debian are. The check of buffers needs an optimized build.
add_compile_options(-fstack-protector-strong)
add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
add_link_options(-Wl,-z,relro -Wl,-z,now)

# Nothing of the bundled libraries is visible, and unused functions are left out. OpenSSL
# keeps handlers that run at the end of a thread, so the code is never unloaded.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections -Wl,-Bsymbolic -Wl,-z,nodelete)
set(bundled_sources ${PROJECT_SOURCE_DIR}/core/deps/certificates.c)
if(SEGUE_ZIG)
    list(APPEND bundled_sources ${PROJECT_SOURCE_DIR}/core/deps/long_double.c)
endif()
add_link_options(-Wl,--wrap=X509_get_default_cert_file)
