# A toolchain for packages: zig compiles for the C library and the architecture that
# SEGUE_TARGET names, for instance x86_64-linux-gnu.2.28. SEGUE_ZIG is the program zig.
# SEGUE_TOOLS is a directory for the programs that stand for its parts.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SEGUE_TARGET SEGUE_ZIG SEGUE_TOOLS)

string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${SEGUE_TARGET})
string(REGEX REPLACE "[.][0-9.]+$" "" SEGUE_HOST ${SEGUE_TARGET})
cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
if(NOT machine STREQUAL CMAKE_SYSTEM_PROCESSOR OR SEGUE_TARGET MATCHES "musl")
    set(CMAKE_SYSTEM_NAME Linux)
endif()

foreach(tool cc ar ranlib)
    set(arguments ${tool})
    if(tool STREQUAL "cc")
        set(arguments "cc -target ${SEGUE_TARGET}")
    endif()
    if(NOT EXISTS ${SEGUE_TOOLS}/${tool})
        file(WRITE ${SEGUE_TOOLS}/${tool}
            "#!/bin/sh\nexec '${SEGUE_ZIG}' ${arguments} \"$@\"\n")
        file(CHMOD ${SEGUE_TOOLS}/${tool}
            PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
    endif()
endforeach()
set(CMAKE_C_COMPILER ${SEGUE_TOOLS}/cc)
set(CMAKE_AR ${SEGUE_TOOLS}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${SEGUE_TOOLS}/ranlib CACHE FILEPATH "")
