# The archives of the libraries that only tests use (as core/deps/archives.cmake).
archive(cmocka 1.1.5 Apache-2.0
    f0ccd8242d55e2fd74b16ba518359151f6f8383ff8aef4976e48393f77bba8b6
    cmocka_1.1.5.orig.tar.xz
    https://deb.debian.org/debian/pool/main/c/cmocka/cmocka_1.1.5.orig.tar.xz)
archive(jansson 2.14 MIT
    c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b
    jansson_2.14.orig.tar.gz
    https://deb.debian.org/debian/pool/main/j/jansson/jansson_2.14.orig.tar.gz)
