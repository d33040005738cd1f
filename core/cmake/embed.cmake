# Makes a C file with the parts of the task board's page. Runs as a script:
# cmake -D OUT=... -D FILES=... -P embed.cmake
set(text "/* Made by core/cmake/embed.cmake from core/board/page. */\n")
string(APPEND text "#include \"board/board.h\"\n\n")
set(rows)
set(number 0)
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    get_filename_component(kind ${file} EXT)
    if(kind STREQUAL ".html")
        set(type "text/html")
        set(name "")
    elseif(kind STREQUAL ".css")
        set(type "text/css")
    else()
        set(type "text/javascript")
    endif()
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND text "static const unsigned char file_${number}[] = {\n${bytes}};\n")
    string(APPEND rows "    {.name = \"${name}\",\n     .kind = SGI_BOARD_FILE,\n"
        "     .type = \"${type}; charset=utf-8\",\n"
        "     .text = {(const char *)file_${number}, sizeof file_${number}}},\n")
    math(EXPR number "${number} + 1")
endforeach()
string(APPEND text "\nconst sgi_board_item sgi_board_files[] = {\n${rows}};\n"
    "const size_t sgi_board_file_count = ${number};\n")
file(WRITE ${OUT} "${text}")
