"""Every header compiles alone.

Public headers as C11 and as C++17, by gcc and clang, with all warnings as errors, also
when included twice. Internal headers as C11 by gcc, with the flags of the build.
"""

import subprocess

import lint

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
PUBLIC = [
    ["gcc", "-x", "c", "-std=c11"],
    ["clang", "-x", "c", "-std=c11"],
    ["g++", "-x", "c++", "-std=c++17"],
    ["clang++", "-x", "c++", "-std=c++17"],
]
INTERNAL = ["gcc", "-x", "c", "-std=c11", "-D_GNU_SOURCE", f"-I{lint.ROOT}/core"]


def compiles(compiler, text):
    """The compiler's complaint, or an empty text."""
    command = [*compiler, *STRICT, f"-I{lint.ROOT}/core/include", "-fsyntax-only", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    return result.stderr or ("refused" if result.returncode else "")


def check(name, compilers):
    """name as it stands in the #include, with its brackets or quotes."""
    text = f"#include {name}\n#include {name}\nextern int segue_lint_unit;\n"
    return [
        f"{name}: {compiler[0]}: {complaint.strip()}"
        for compiler in compilers
        if (complaint := compiles(compiler, text))
    ]


def main():
    for compiler in [*PUBLIC, INTERNAL]:
        lint.expect(not compiles(compiler, "extern int planted;\n"), f"{compiler} fails")
        lint.expect(compiles(compiler, "size_t planted;\n"), f"{compiler} accepts all")
    findings = []
    for path in lint.PUBLIC_HEADERS:
        findings += check(f"<segue/{path.name}>", PUBLIC)
    internal = [path for path in lint.files("core/**/*.h") if path.parts[1] != "include"]
    for path in internal:
        findings += check(f'"{path.relative_to("core").as_posix()}"', [INTERNAL])
    lint.finish(findings, f"{len(lint.PUBLIC_HEADERS) + len(internal)} headers")


main()
