/* The cost of reading the documents of bench_json with simdjson's DOM and with yyjson:
 * one line of JSON for each figure, in nanoseconds for one document. Both use their
 * memory again from document to document, and simdjson's text has the padding that it
 * wants. Neither looks for keys that an object has twice, which Segue's reader does.
 *
 * json_peers DIRECTORY   the directory that bench_json --write has filled
 *
 * json_figures.py compiles it, when .ci/setup-peers json has fetched the libraries. */
#include <fstream>
#include <sstream>
#include <string>

#include "bench/cpu_time.h"
#include "simdjson.h"
#include "yyjson.h"

struct document {
    std::string text;
    simdjson::padded_string padded;
    simdjson::dom::parser parser;
    std::string memory; /* yyjson's */
};

static void read_with_simdjson(void *user)
{
    document *d = static_cast<document *>(user);
    if (d->parser.parse(d->padded).error())
        abort();
}

static void read_with_yyjson(void *user)
{
    document *d = static_cast<document *>(user);
    yyjson_alc memory;
    if (!yyjson_alc_pool_init(&memory, &d->memory[0], d->memory.size()))
        abort();
    if (!yyjson_read_opts(&d->text[0], d->text.size(), 0, &memory, nullptr))
        abort();
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    fprintf(stderr, "simdjson %s, yyjson %s\n", SIMDJSON_VERSION, YYJSON_VERSION_STRING);
    for (const char *name : {"call", "note", "list"}) {
        std::ifstream file(std::string(argv[1]) + "/" + name);
        std::stringstream text;
        text << file.rdbuf();
        document d;
        d.text = text.str();
        d.padded = simdjson::padded_string(d.text);
        d.memory.resize(yyjson_read_max_memory_usage(d.text.size(), 0));
        print_figure((std::string("simdjson_") + name).c_str(),
                     measure(read_with_simdjson, &d));
        print_figure((std::string("yyjson_") + name).c_str(),
                     measure(read_with_yyjson, &d));
    }
    return 0;
}
