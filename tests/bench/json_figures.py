"""The JSON reader beside simdjson's DOM and yyjson, in processor time.

All three read the same documents. The baseline of the call is the faster of the two,
and that of the list is simdjson. `json_call_shaped` reads calls of the same length that
differ in three values, as a conversation reads them: with the shapes of earlier ones.
Without the sources of the two (.ci/setup-peers json), the figures have no baseline and
no goal.
"""
import os
import subprocess
import tempfile

from figures import ROOT, alternate, run

SOURCES = os.path.join(ROOT, "build", "deps", "json")


def peers_of(directory):
    """Compiles json_peers.cc, with -O2 as the library is. Returns the program, or
    None."""
    if not os.path.exists(os.path.join(SOURCES, "simdjson.cpp")):
        print("no simdjson and yyjson: .ci/setup-peers json fetches them", flush=True)
        return None
    objects = []
    for compiler, source in (("cc", os.path.join(SOURCES, "yyjson.c")),
                             ("c++", os.path.join(SOURCES, "simdjson.cpp")),
                             ("c++", os.path.join(ROOT, "tests/bench/json_peers.cc"))):
        objects.append(os.path.join(directory, os.path.basename(source) + ".o"))
        language = ["-std=c++17"] if compiler == "c++" else []
        subprocess.run([compiler, "-O2", "-DNDEBUG", *language, "-I", SOURCES, "-I",
                        os.path.join(ROOT, "tests"), "-c", source, "-o", objects[-1]],
                       check=True)
    program = os.path.join(directory, "json_peers")
    subprocess.run(["c++", *objects, "-o", program], check=True)
    return program


def measure(programs, report, plan, build):
    with tempfile.TemporaryDirectory(dir=build) as directory:
        bench = programs.path("bench_json")
        subprocess.run([bench, "--write", directory], check=True)
        peers = peers_of(directory)
        ours, theirs = alternate(plan.rounds // 2, lambda: run([bench]),
                                 lambda: run([peers, directory]) if peers else {})
    calls = [said["json_call_250b_ns"] for said in ours]
    lists = [said["json_list_100k_gbps"] for said in ours]
    if not peers:
        report.add("json_call_250b", calls, "ns")
        report.add("json_list_100k", lists, "GB/s")
        return
    for peer in ("simdjson", "yyjson"):
        report.add(f"json_call_250b_{peer}", [said[f"{peer}_call"] for said in theirs],
                   "ns")
    report.add("json_call_250b", calls, "ns",
               [min(said["simdjson_call"], said["yyjson_call"]) for said in theirs],
               ("ratio", "<=", 1.0))
    report.add("json_call_shaped", [said["json_call_shaped_ns"] for said in ours], "ns",
               [min(said["simdjson_call"], said["yyjson_call"]) for said in theirs],
               ("ratio", "<=", 1.0))
    size = ours[0]["json_list_bytes"]
    report.add("json_list_100k_yyjson", [size / said["yyjson_list"] for said in theirs],
               "GB/s")
    report.add("json_list_100k", lists, "GB/s",
               [size / said["simdjson_list"] for said in theirs], ("ratio", ">=", 0.8))
