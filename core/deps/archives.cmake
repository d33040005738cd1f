# The archives of the bundled libraries. Each call names the library, its version, its
# licence, the SHA-256 of the archive, the name of the archive in the folder of archives,
# and the URLs that have the same bytes. The archive is that of Debian's sources (.orig),
# which apt verifies. Several calls for one library name archives with the same files: the
# first one that the folder has is used, or else the first one is downloaded.
set(segue_archives)

# archive(NAME VERSION LICENCE SHA256 FILE URL...)
macro(archive name version licence sha256 file)
    list(APPEND segue_archives ${name})
    list(APPEND segue_archives_${name} ${file})
    set(segue_version_${name} ${version})
    set(segue_licence_${name} ${licence})
    set(segue_sha256_${file} ${sha256})
    set(segue_urls_${file} ${ARGN})
endmacro()

archive(openssl 3.5.7 Apache-2.0
    a8c0d28a529ca480f9f36cf5792e2cd21984552a3c8e4aa11a24aa31aeac98e8
    openssl_3.5.7.orig.tar.gz
    https://www.openssl.org/source/openssl-3.5.7.tar.gz)
archive(libev 4.33 BSD-2-Clause
    507eb7b8d1015fbec5b935f34ebed15bf346bed04a11ab82b8eee848c4205aea
    libev_4.33.orig.tar.gz
    http://dist.schmorp.de/libev/Attic/libev-4.33.tar.gz)
archive(libwebsockets 4.3.5 MIT
    87f99ad32803ed325fceac5327aae1f5c1b417d54ee61ad36cffc8df5f5ab276
    libwebsockets_4.3.5.orig.tar.gz
    https://github.com/warmcat/libwebsockets/archive/refs/tags/v4.3.5.tar.gz)
archive(nghttp2 1.70.0 MIT
    aa317e2cf9dca6afa0aed68f8fad6ff303ec6982e25a78c75c0b65e2b9b3ded5
    nghttp2_1.70.0.orig.tar.gz
    https://github.com/nghttp2/nghttp2/releases/download/v1.70.0/nghttp2-1.70.0.tar.gz)
archive(curl 8.22.0 curl
    d54dd598bf05927a726deb38df31c6a255ba83ff1de57c5d1464dac3ed8f44a1
    curl_8.22.0.orig.tar.gz
    https://curl.se/download/curl-8.22.0.tar.gz)
archive(sqlite 3.53.4 blessing
    05366adc8ee80c6b1faa71285b49d133c2121238ca58934b077fdeb95934abd4
    sqlite3_3.53.4.orig.tar.xz
    https://deb.debian.org/debian/pool/main/s/sqlite3/sqlite3_3.53.4.orig.tar.xz)
archive(hiredis 1.2.0 BSD-3-Clause
    82ad632d31ee05da13b537c124f819eb88e18851d9cb0c30ae0552084811588c
    hiredis_1.2.0.orig.tar.gz
    https://github.com/redis/hiredis/archive/refs/tags/v1.2.0.tar.gz)
archive(postgresql 15.18 PostgreSQL
    11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4
    postgresql-15_15.18.orig.tar.bz2
    https://ftp.postgresql.org/pub/source/v15.18/postgresql-15.18.tar.bz2)
list(REMOVE_DUPLICATES segue_archives)
