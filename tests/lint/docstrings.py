"""Every public name has a comment: 100 % of the Python package and of the C headers.

Python: each name of segue.__all__, and of the public modules; each public method and
property, and each field (a string below it, or its name in the docstring of the class).
Every parameter of a public function is named in a docstring. The methods of SyncContext
and of the session of segue.sync have the parameters of their asynchronous twins.

C: each type, constant, function and macro, each member and each constant of an enum. The
exceptions are those that the head of segue.h explains once: struct_size, user, free_user,
NAME_len and NAME_count beside NAME, SEGUE_X_INIT; and a callback whose type has a
comment.

TypeDoc checks the same for Node (core/docs/site/typedoc.json, `notDocumented`).
"""

import ast
import re
import sys

import lint

sys.path.insert(0, str(lint.ROOT / "core/docs/site/make"))

import c_header  # noqa: E402
import c_members  # noqa: E402
import python_names  # noqa: E402

PACKAGE = lint.ROOT / python_names.PACKAGE
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
VALUE = (ast.Assign, ast.AnnAssign)
CALLBACK = re.compile(r"\bsegue_\w+_fn \w+$")


# ---- Python ----

def file_of(place):
    """Returns the file of a module, given its path without a suffix."""
    for path in (place / "__init__.py", *map(place.with_suffix, (".py", ".pyi"))):
        if path.exists():
            return path
    sys.exit(f"no module {place}")


def name_of(node):
    if isinstance(node, (ast.ClassDef, *FUNCTION)):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return getattr(target, "id", "")


def find(path, name):
    """Returns (file, body, node) of a name: its last definition, also in the module from
    which it is imported."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.ClassDef, *FUNCTION, *VALUE)
    own = [node for node in body if isinstance(node, kinds) and name_of(node) == name]
    if own:
        return path, body, own[-1]
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    base = path.parents[node.level - 1]
                    there = base.joinpath(*(node.module or "").split("."))
                    return find(file_of(there), alias.name)
    sys.exit(f"{path} has no {name}")


def has_text_below(body, node):
    at = body.index(node) + 1
    return (at < len(body) and isinstance(body[at], ast.Expr)
            and isinstance(getattr(body[at], "value", None), ast.Constant))


def is_internal(node):
    """Returns whether a member is private, an overload or a setter."""
    name = name_of(node)
    marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", [])]
    return name.startswith("_") or any("overload" in mark or mark.endswith(".setter")
                                       for mark in marks)


def named(name, text):
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def unnamed_parameters(node, text):
    """Returns the parameters of a function that a docstring does not name."""
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    arguments = node.args
    found = [one.arg for one in
             [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
    if found[:1] in (["self"], ["cls"]) and "staticmethod" not in marks:
        found = found[1:]
    if len(found) == 1:
        return []  # the sentence is about it
    return [name for name in found if not named(name, text) and name[0] != "_"]


def check_python(name, body, node, is_twin=False):
    """Yields (name, what is missing or "") of a name and its members."""
    text = "" if isinstance(node, VALUE) else ast.get_docstring(node) or ""
    if isinstance(node, VALUE):
        yield name, "" if has_text_below(body, node) else "no text below it"
        return
    yield name, "" if text else "no docstring"
    if isinstance(node, FUNCTION):
        for one in unnamed_parameters(node, text):
            yield f"{name}({one})", "not named in the docstring"
        return
    for member in node.body:
        if not isinstance(member, (*FUNCTION, *VALUE)) or is_internal(member):
            continue
        whole = f"{name}.{name_of(member)}"
        if isinstance(member, ast.AnnAssign):
            is_told = has_text_below(node.body, member) or named(name_of(member), text)
            yield whole, "" if is_told else "no text below it"
        elif isinstance(member, FUNCTION):
            own = ast.get_docstring(member) or ""
            yield whole, "" if own else "no docstring"
            if is_twin:
                continue
            for one in unnamed_parameters(member, f"{own}\n{text}"):
                yield f"{whole}({one})", "not named in a docstring"


def python():
    for name, module in python_names.public().items():
        path = file_of(PACKAGE.joinpath(*module.lstrip(".").split(".")))
        place, body, node = find(path, name)
        for one, wrong in check_python(name, body, node, name == "SyncContext"):
            yield place.relative_to(lint.ROOT).as_posix(), one, wrong
    for module in python_names.MODULES:
        path = file_of(PACKAGE.joinpath(*module.split(".")))
        place = path.relative_to(lint.ROOT).as_posix()
        code = ast.parse(path.read_text(encoding="utf-8"))
        yield place, module, "" if ast.get_docstring(code) else "no docstring"
        for node in code.body:
            if isinstance(node, (ast.ClassDef, *FUNCTION)) and not is_internal(node):
                is_twin = module == "sync" and node.name == "Session"
                for one, wrong in check_python(node.name, code.body, node, is_twin):
                    yield place, one, wrong


# ---- C ----

def is_explained(name, members, code):
    """Returns whether the head of segue.h or the type of a callback explains a member."""
    stem = re.sub(r"_(?:len|count)$|s?_(?:len|count)$", "", name)
    if name in c_members.PLAIN:
        return True
    if stem != name and (stem in members or f"{stem}s" in members):
        return True
    return any(CALLBACK.search(part.strip()) and part.strip().endswith(name)
               for part in re.sub(r"/\*.*?\*/", "", code, flags=re.S).split(";"))


def check_item(item):
    """Yields (name, what is missing or "") of a declaration and its members."""
    names = item.names()
    own = names[0] if names else item.code.split("\n")[0]
    if not re.fullmatch(r"SEGUE_\w+_INIT", own):
        last = item.code.rsplit("}", 1)[-1]
        is_short = "{" not in item.code and "/*" in last
        yield own, "" if item.comment or is_short or is_options(item) else "no comment"
    found = c_members.members(item.code)
    for name, comment in found:
        wrong = not comment and not is_explained(name, dict(found), item.code)
        yield f"{own}.{name}", "no comment" if wrong else ""


def is_options(item):
    """Returns whether a struct of options or callbacks stands below what uses it, so that
    its members say everything."""
    return "struct_size" in item.code


def c():
    for header in c_header.HEADERS:
        for section in c_header.read(header)[1]:
            for item in section.items():
                for name, wrong in check_item(item):
                    yield c_header.INCLUDE + header, name, wrong


def self_check():
    def of(code):
        body = ast.parse(code).body
        return [one for one, wrong in check_python("x", body, body[0]) if wrong]

    lint.expect(of("def x(): ...") == ["x"], "a function was let pass")
    lint.expect(of('def x(a, b):\n    "Does a."') == ["x(b)"], "a parameter")
    lint.expect(of('class x:\n    "X."\n    a: int\n    def f(self): ...') ==
                ["x.a", "x.f"], "members were let pass")
    good = 'class x:\n    "X: a."\n    a: int\n    b: int\n    "B."\n'
    lint.expect(not of(good), "a good class is refused")

    def of_c(code, *comment):
        item = c_header.Item(list(comment), code)
        return [one for one, wrong in check_item(item) if wrong]

    lint.expect(of_c("typedef struct segue_x segue_x;") == ["segue_x"], "a type")
    wrong = "enum segue_x {\n    SEGUE_A = 1, /* a */\n    SEGUE_B = 2\n};"
    lint.expect(of_c(wrong, "X.") == ["segue_x.SEGUE_B"], "a constant was let pass")
    good = ("typedef struct segue_x {\n    size_t struct_size;\n"
            "    const char *text; /* t */\n    size_t text_len;\n"
            "    segue_x_fn on_x;\n} segue_x;")
    lint.expect(not of_c(good), f"a good struct is refused: {of_c(good)}")


def main():
    self_check()
    findings, count = [], 0
    for path, name, wrong in [*python(), *c()]:
        count += 1
        if wrong:
            findings.append(f"{path}: {name}: {wrong}")
    share = 100 * (count - len(findings)) / count
    lint.finish(findings, f"{count} public names, {share:.1f} % documented")


main()
