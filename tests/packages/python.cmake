# The sources of the Python that .ci/cpython builds (as core/deps/archives.cmake). zlib is
# for pip, which reads compressed wheels.
archive(python3.13 3.13.5 Python-2.0
    93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640
    python3.13_3.13.5.orig.tar.xz
    https://www.python.org/ftp/python/3.13.5/Python-3.13.5.tar.xz)
archive(zlib 1.3.1 Zlib
    60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb
    zlib_1.3.dfsg+really1.3.1.orig.tar.gz
    https://deb.debian.org/debian/pool/main/z/zlib/zlib_1.3.dfsg+really1.3.1.orig.tar.gz)
