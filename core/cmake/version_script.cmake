# Makes the linker's version script, which exports the functions of api.def and nothing
# else. When a function of the table has no definition, the linker reports no error; the
# symbol lint does.
function(make_version_script table node output)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
    file(STRINGS ${table} entries REGEX "^SGI_API\\([a-z0-9_]+,")
    if(NOT entries)
        message(FATAL_ERROR "${table} lists no function")
    endif()
    set(text "${node} {\nglobal:\n")
    foreach(entry IN LISTS entries)
        string(REGEX REPLACE "^SGI_API\\(([a-z0-9_]+),.*" "    \\1;\n" line "${entry}")
        string(APPEND text "${line}")
    endforeach()
    string(APPEND text "local:\n    *;\n};\n")
    file(CONFIGURE OUTPUT ${output} CONTENT "${text}" @ONLY)
endfunction()
