"""The module matches the library: its functions core/api/api.def, the members of its
structs the headers. _segue.pyi matches the module."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from segue import _segue, errors

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "core" / "api" / "api.def"
HEADERS = ROOT / "core" / "include" / "segue"
STUB = ROOT / "python" / "src" / "segue" / "_segue.pyi"

# Functions of the library that the module does not have, and what replaces them.
ELSEWHERE = {
    "call_hold_turn": "the event CALL_NOW",
    "call_fail_with": "call_fail",
    "client_updated": "for gateways, which are written in C",
    "client_log": "for gateways",
    "client_call": "for gateways",
    "timer_start": "asyncio.loop.call_later",
    "timer_cancel": "asyncio.TimerHandle.cancel",
    "timer_free": "asyncio.TimerHandle",
    "call_runtime": "Host",
    "session_runtime": "Host",
    "event_json": "the event RUNTIME_EVENT",
    "status_text": "the message of an error",
    "error_new": "an exception",
    "segment_read": "Segment.number",
    "segment_text": "Segment.text",
    "segment_batch_next": "the list of the event SEGMENTS",
    "request_take_result": "the result of the event COMPLETE",
    "error_read": "ErrorInfo",
    "error_copy": "an ErrorInfo is a copy",
    "error_free": "an ErrorInfo is a tuple",
    "store_list": "the command segue store",
    "store_show": "the command segue store",
    "store_entries": "the command segue store",
    "store_export": "the command segue store",
    "store_importer_new": "the command segue store",
    "store_importer_add": "the command segue store",
    "store_importer_close": "the command segue store",
    "store_command": "the command segue store",
    "store_rerun": "the command segue store",
    "store_remove": "the command segue store",
    "store_read_stats": "the command segue store",
    "store_compact": "the command segue store",
}
# Functions that only the module has: its own, or two steps in one.
OWN = {
    "allocated",
    "call_reply",
    "call_send_json",
    "live_handles",
    "option_names",
    "runtime_side_fd",
    "set_block_decoder",
    "set_error_factory",
    "store_wake",
    "store_serve",
    "transport_took",
}
# Members of structs that are arguments here, or that Python cannot give.
ARGUMENTS = {
    "segue_runtime_options": {"allocator", "user", "log", "on_wake", "hooks"},
    "segue_observer_options": {"user", "on_event"},
    "segue_spawn_options": {"user", "free_user", "on_stderr"},
    "segue_store_options": {"allocator"},
    "segue_server_options": {
        *("user", "free_user", "principal", "on_idle", "on_validate"),
        *("seal_key_len", "seal_key_before_len"),
    },
    "segue_item_options": {"user", "free_user", "on_call", "on_completion"},
    "segue_session_options": set(),
    "segue_request_options": set(),
    "segue_http_options": {"user", "free_user", "on_headers"},
    "segue_listen_options": {"bearer", "board_store"},
    "segue_oauth_options": {
        *("user", "free_user"),
        *("on_authorize", "on_assertion", "on_load", "on_save"),
    },
    "segue_bearer_options": {"user", "free_user", "on_bearer"},
}


def public_functions() -> set[str]:
    """All but those of easy.h, which is for C only."""
    every = re.findall(r"^SGI_API\(segue_(\w+),", API.read_text(), re.MULTILINE)
    easy = re.findall(r"\bsegue_(\w+)\(", (HEADERS / "easy.h").read_text())
    return set(every) - set(easy)


def module_functions() -> set[str]:
    return {
        name
        for name in dir(_segue)
        if not name.startswith("_")
        and callable(getattr(_segue, name))
        and not isinstance(getattr(_segue, name), type)
    }


def stub() -> ast.Module:
    return ast.parse(STUB.read_text())


def test_every_function_of_the_library_is_there() -> None:
    assert public_functions() - set(ELSEWHERE) == module_functions() - OWN
    assert set(ELSEWHERE) <= public_functions()


def test_what_is_elsewhere_is_there() -> None:
    for place in ELSEWHERE.values():
        if place.startswith("Segment."):
            assert hasattr(_segue.Segment, place.removeprefix("Segment."))


def test_the_stub_names_what_the_module_has() -> None:
    body = stub().body
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    assert functions == module_functions()
    constants = {
        node.target.id: ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value is not None
    }
    module = {name: getattr(_segue, name) for name in dir(_segue) if name.isupper()}
    assert constants == {name: module[name] for name in module if name[0] != "_"}
    types = {name for name in dir(_segue) if isinstance(getattr(_segue, name), type)}
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    assert types <= classes


def test_the_stub_has_the_parameters_of_the_module() -> None:
    """SWIG's functions report a wrong keyword; hand-written ones take no keywords."""
    for node in stub().body:
        if not isinstance(node, ast.FunctionDef):
            continue
        names = [argument.arg for argument in node.args.args]
        if not names:
            continue
        function = getattr(_segue, node.name)
        wrong = {name: object() for name in names}
        try:
            function(**wrong)
        except TypeError as error:
            assert "keyword" not in str(error), (node.name, error)
        except errors.Error:
            pass


def test_dicts_can_set_every_member_of_every_struct() -> None:
    struct = r"^(?:typedef )?struct (segue_\w+_options) \{(.*?)^\}"
    headers = "".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    structs = re.findall(struct, headers, re.MULTILINE | re.DOTALL)
    tables = _segue.option_names()
    assert {name for name, _ in structs} == set(tables) == set(ARGUMENTS)
    for name, text in structs:
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        members = set(re.findall(r"(\w+)\s*;", text)) - {"struct_size"}
        assert members - ARGUMENTS[name] == set(tables[name]), name


def test_an_option_sets_each_limit_that_an_error_text_names_as_one() -> None:
    tables = _segue.option_names()
    structs = ("runtime", "server", "listen", "session")
    known = {name for one in structs for name in tables[f"segue_{one}_options"]}
    limits = (ROOT / "core" / "base" / "limits.def").read_text()
    rows = re.findall(r"^LIMIT\(\w+, (\w+), (OPTION|FIXED)\)$", limits, re.MULTILINE)
    assert len(rows) > 20
    for name, kind in rows:
        assert (name in known) == (kind == "OPTION"), name


def test_the_stub_types_every_option() -> None:
    typed = {
        node.name: [
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        for node in stub().body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Options")
    }
    for struct, members in _segue.option_names().items():
        words = struct.removeprefix("segue_").split("_")
        name = "".join(word.capitalize() for word in words)
        assert sorted(typed[name]) == sorted(members), name


def test_exceptions_are_those_of_the_table() -> None:
    maker = ROOT / "bindings" / "python" / "make_errors.py"
    command = [sys.executable, str(maker), "--check"]
    subprocess.run(command, check=True)
    for status, kind in errors.BY_STATUS.items():
        assert _segue.status_name(status) == kind.name
        assert kind.status == status
