"""The members of structs and enums in the C headers, each with its comment."""

from __future__ import annotations

import re

TOKEN = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<end>[;,])|(?P<line>\n)|[^;,/\n]+|/", re.S)
PLAIN = {"struct_size", "user", "free_user"}  # the head of segue.h explains them


def words(comment: str) -> str:
    """Returns the text of a comment in one line."""
    return " ".join(re.sub(r"\n\s*\*?", " ", comment).split())


def name_of(code: str) -> str:
    """Returns what a declaration inside of braces declares."""
    if match := re.search(r"\(\*(\w+)\)\s*\(", code):
        return match[1]
    if match := re.match(r"\s*([A-Z][A-Z0-9_]+)\b", code):
        return match[1]
    match = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", code)
    return match[1] if match else ""


def members(code: str) -> list[tuple[str, str]]:
    """Returns (name, comment) of each member of a struct or an enum."""
    match = re.search(r"\{(.*)\}", code, re.S)
    if not match or code.startswith("#define"):
        return []
    found: list[tuple[str, str]] = []
    before, current, depth, is_fresh = "", "", 0, False
    for token in TOKEN.finditer(match[1]):
        if token["comment"] is not None:
            if current.strip():  # before the comma of the last constant of an enum
                found.append((name_of(current), before or words(token["comment"])))
                before, current, is_fresh = "", "", True
            elif is_fresh and found:
                found[-1] = (found[-1][0], found[-1][1] or words(token["comment"]))
            else:
                before = words(token["comment"])
        elif token["line"]:
            is_fresh = is_fresh and bool(current.strip())
            current += "\n"
        elif token["end"] and depth == 0 and (token["end"] == ";" or "enum" in code[:14]):
            if current.strip():
                found.append((name_of(current), before))
                before = ""
            current, is_fresh = "", True
        else:
            depth += token[0].count("(") - token[0].count(")")
            current += token[0]
    if current.strip():
        found.append((name_of(current), before))
    return found
