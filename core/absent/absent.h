/* absent: what stands in place of an optional part (core/cmake/parts.cmake) that a build
 * leaves out. Each function of the public API is there; one that needs the part returns
 * SEGUE_E_UNSUPPORTED, and its error names the switch that brings the part. */
#ifndef SGI_ABSENT_H
#define SGI_ABSENT_H

#define SGI_ABSENT_TEXT(what, option)                                                    \
    "This library was built without " what ": build it with the CMake option " option    \
    "=ON"

#endif
