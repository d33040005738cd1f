/* absent: the error text of a function whose part (core/cmake/parts.cmake) a build leaves
 * out. A file absent_PART.c replaces the files of the part, in the same folder, and has
 * every public function of the part. A function that needs the part returns
 * SEGUE_E_UNSUPPORTED. The function's error names the CMake option that adds the part. */
#ifndef SGI_ABSENT_H
#define SGI_ABSENT_H

#define SGI_ABSENT_TEXT(what, option)                                                    \
    "This library was built without " what ": build it with the CMake option " option    \
    "=ON"

#endif
