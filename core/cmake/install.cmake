# The installed files: headers, both libraries, segue.pc, a CMake package, the licence and
# the list of what the library contains.
# The shared and the static target are exported separately, so that users of the shared
# library need no development packages of the libraries that it uses.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Segue)

install(FILES core/include/segue/segue.h core/include/segue/segue_auth.h
    core/include/segue/segue_ext.h core/include/segue/easy.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/segue)
install(FILES LICENSE ${segue_sbom} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/segue)
# Strips the libraries of a release build, as `cmake --install --strip` does. A build with
# debug information keeps that information.
install(CODE "if(CMAKE_INSTALL_CONFIG_NAME MATCHES \"^(Release|MinSizeRel)$\")
    set(CMAKE_INSTALL_DO_STRIP ON)
endif()")
install(TARGETS segue EXPORT SegueTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT SegueTargets NAMESPACE Segue:: DESTINATION ${package_dir})
if(SEGUE_BUNDLED) # The static library would need the bundled libraries beside it.
    set(segue_packages)
    set(segue_link_flags)
    install(DIRECTORY ${bundled_prefix}/share/notices
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/segue)
else()
    install(TARGETS segue_static EXPORT SegueStaticTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT SegueStaticTargets NAMESPACE Segue:: DESTINATION ${package_dir})
endif()

# The libraries that the static library links, for SegueConfig.cmake.
set(segue_find)
set(segue_found)
foreach(package IN LISTS segue_packages)
    string(REGEX MATCH "^[^ ]+" name ${package})
    string(REPLACE " COMPONENTS" " QUIET COMPONENTS" find ${package})
    if(find STREQUAL package)
        string(APPEND find " QUIET")
    endif()
    string(APPEND segue_find "find_package(${find})\n")
    list(APPEND segue_found "${name}_FOUND")
endforeach()
list(REMOVE_DUPLICATES segue_found)
list(JOIN segue_found " AND " segue_found)
if(SEGUE_BUNDLED)
    set(segue_found FALSE)
endif()
configure_package_config_file(core/cmake/SegueConfig.cmake.in
    ${PROJECT_BINARY_DIR}/SegueConfig.cmake INSTALL_DESTINATION ${package_dir})
# SameMinorVersion, because in 0.x every minor version has its own ABI.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SegueConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/SegueConfig.cmake ${PROJECT_BINARY_DIR}/SegueConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/core/cmake/FindHiredis.cmake
    ${PROJECT_SOURCE_DIR}/core/cmake/FindLibev.cmake
    ${PROJECT_SOURCE_DIR}/core/cmake/FindLibwebsockets.cmake
    DESTINATION ${package_dir})

# The prefix is relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
    ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
list(JOIN segue_link_flags " " pc_private)
configure_file(core/cmake/segue.pc.in ${PROJECT_BINARY_DIR}/segue.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/segue.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
