# What to install when a library is missing. The packages of Debian are those that the
# tests install. Those of Fedora and Alpine were not tried.

# distributed(NAME DEBIAN FEDORA ALPINE): the packages of distributions that have what
# find_package(NAME) looks for.
macro(distributed name debian fedora alpine)
    set(packages_debian_${name} ${debian})
    set(packages_fedora_${name} ${fedora})
    set(packages_alpine_${name} ${alpine})
endmacro()
distributed(Libev libev-dev libev-devel libev-dev)
distributed(Libwebsockets "libwebsockets-dev;libwebsockets-evlib-ev" libwebsockets-devel
    libwebsockets-dev)
distributed(CURL libcurl4-openssl-dev libcurl-devel curl-dev)
distributed(OpenSSL libssl-dev openssl-devel openssl-dev)
distributed(SQLite3 libsqlite3-dev sqlite-devel sqlite-dev)
distributed(Hiredis libhiredis-dev hiredis-devel hiredis-dev)
distributed(PostgreSQL libpq-dev libpq-devel libpq-dev)
distributed(Threads libc6-dev glibc-devel musl-dev)
distributed(Python python3-dev python3-devel python3-dev)
distributed(SWIG swig swig swig)

# refuse_missing(NAME...): ends with one error, which names what to install for all of
# these. missing_advice is its last line.
function(refuse_missing)
    foreach(distribution debian fedora alpine)
        set(wanted)
        foreach(name IN LISTS ARGN)
            list(APPEND wanted ${packages_${distribution}_${name}})
        endforeach()
        list(JOIN wanted " " ${distribution})
    endforeach()
    list(JOIN ARGN ", " names)
    message(FATAL_ERROR
        "Segue needs these, which were not found, or are too old: ${names}.\n"
        "  Debian, Ubuntu: apt-get install ${debian}\n"
        "  Fedora: dnf install ${fedora}\n"
        "  Alpine: apk add ${alpine}\n"
        "${missing_advice}")
endfunction()
