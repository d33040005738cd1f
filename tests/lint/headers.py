"""Every header compiles alone.

Public headers compile as C11 and as C++17, with gcc and clang, with all warnings as
errors, also when included twice. Internal headers compile as C11 with gcc and the flags
of the build.

Each public struct that a program fills, and only such a struct, has its SEGUE_X_INIT.
It initialises a struct of its type with its size, and can be assigned to no other type.
"""

import re
import subprocess

import lint

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
PUBLIC = [
    ["gcc", "-x", "c", "-std=c11"],
    ["clang", "-x", "c", "-std=c11"],
    ["g++", "-x", "c++", "-std=c++17"],
    ["clang++", "-x", "c++", "-std=c++17"],
]
LIBPQ = subprocess.run(["pkg-config", "--cflags", "libpq"], capture_output=True,
                       text=True, check=True).stdout.split()
INTERNAL = ["gcc", "-x", "c", "-std=c11", "-D_GNU_SOURCE", f"-I{lint.ROOT}/core", *LIBPQ]


def compiles(compiler, text):
    """Returns the compiler's errors, or an empty text."""
    command = [*compiler, *STRICT, f"-I{lint.ROOT}/core/include", "-fsyntax-only", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return result.stderr or ("refused" if result.returncode else "")


def check(name, compilers):
    """name: as in the #include, with its brackets or quotes."""
    text = f"#include {name}\n#include {name}\nextern int segue_lint_unit;\n"
    return [
        f"{name}: {compiler[0]}: {complaint.strip()}"
        for compiler in compilers
        if (complaint := compiles(compiler, text))
    ]


def fillable(text):
    """Returns the structs of a header that start with struct_size and have no other way
    of being typed."""
    bodies = re.findall(r"^(?:typedef )?struct (segue_\w+) \{\n\s+size_t struct_size;",
                        lint.without_comments(text), re.M)
    return set(bodies)


def check_inits(path):
    text = lint.read(path)
    define = r"^#define (SEGUE_\w+)_INIT SEGUE_INIT\((\w+)\)$"
    defined = dict(re.findall(define, text, re.M))
    wanted = {name.upper(): name for name in fillable(text)}
    findings = [f"{path}: {name}_INIT is missing, or of another type"
                for name in sorted(wanted) if defined.get(name) != wanted[name]]
    findings += [f"{path}: {name}_INIT is of no struct that is filled"
                 for name in sorted(set(defined) - set(wanted))]
    use = "".join(f"{name} v{n} = {macro}_INIT; v{n} = {macro}_INIT; "
                  f"if (v{n}.struct_size != sizeof v{n}) return 1;\n"
                  for n, (macro, name) in enumerate(sorted(wanted.items())))
    program = f"#include <segue/{path.name}>\nint use(void);\nint use(void) {{\n"
    for compiler in PUBLIC:
        complaint = compiles(compiler, f"{program}{use}return 0; }}\n")
        if complaint:
            findings.append(f"{path}: {compiler[0]}: {complaint.strip()}")
    return findings


def another_kind_is_refused():
    for compiler in PUBLIC:
        for wrong in ("segue_http_options o = SEGUE_LISTEN_OPTIONS_INIT;",
                      "segue_http_options o; o = SEGUE_LISTEN_OPTIONS_INIT;"):
            text = ("#include <segue/segue.h>\nint use(void);\nint use(void) {\n"
                    f"{wrong}\nreturn (int)o.struct_size; }}\n")
            lint.expect(not compiles(compiler, text.replace("LISTEN", "HTTP")),
                        f"{compiler} refuses the right kind")
            lint.expect(compiles(compiler, text), f"{compiler} takes {wrong}")


def main():
    for compiler in [*PUBLIC, INTERNAL]:
        lint.expect(not compiles(compiler, "extern int planted;\n"), f"{compiler} fails")
        lint.expect(compiles(compiler, "size_t planted;\n"), f"{compiler} accepts all")
    another_kind_is_refused()
    findings = []
    for path in lint.PUBLIC_HEADERS:
        findings += check(f"<segue/{path.name}>", PUBLIC) + check_inits(path)
    internal = [path for path in lint.files("core/**/*.h") if path.parts[1] != "include"]
    for path in internal:
        findings += check(f'"{path.relative_to("core").as_posix()}"', [INTERNAL])
    lint.finish(findings, f"{len(lint.PUBLIC_HEADERS) + len(internal)} headers")


main()
