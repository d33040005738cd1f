/* absent: what a function says whose part (core/cmake/parts.cmake) a build leaves out. A
 * file absent_PART.c stands in place of the files of the part, in the same room. Each
 * function of the public API is there; one that needs the part returns
 * SEGUE_E_UNSUPPORTED, and its error names the switch that brings the part. */
#ifndef SGI_ABSENT_H
#define SGI_ABSENT_H

#define SGI_ABSENT_TEXT(what, option)                                                    \
    "This library was built without " what ": build it with the CMake option " option    \
    "=ON"

#endif
