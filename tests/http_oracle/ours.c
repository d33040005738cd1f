/* Segue's reading of each document of a batch; tell.h has the format. */
#include "tell.h"

#include "wire/http1.h"

static void tell(const sgi_http1 *parser, bool first, size_t end)
{
    sgi_str name, value;
    tell_request(first, parser->head.method.p, parser->head.method.n,
                 parser->head.target.p, parser->head.target.n);
    for (size_t i = 0; sgi_http1_header_at(&parser->head, i, &name, &value); i++)
        tell_header(i == 0, name.p, name.n, value.p, value.n);
    tell_end(parser->body.p, parser->body.len, parser->head.keep_alive, end);
}

static void judge(const char *text, size_t length)
{
    sgi_http1 parser;
    sgi_str input = {text, length};
    sgi_http1_event event;
    bool first = true, keeps = true;
    sgi_http1_init(&parser, &sgi_mem_libc, NULL);
    printf("{\"requests\":[");
    while (keeps && (event = sgi_http1_next(&parser, &input)) != SGI_HTTP1_MORE) {
        if (event == SGI_HTTP1_BAD)
            break;
        if (event == SGI_HTTP1_HEAD)
            continue;
        tell(&parser, first, length - input.n);
        first = false;
        keeps = parser.head.keep_alive; /* the bytes behind it are no request any more */
        sgi_http1_reset(&parser);
    }
    printf("],\"fault\":");
    sgi_str problem = sgi_str_of(parser.head.fault.problem);
    tell_text(problem.p, problem.n);
    printf("}\n");
    sgi_http1_free(&parser);
}

int main(void)
{
    char *text;
    size_t length;
    while ((text = read_document(&length))) {
        judge(text, length);
        free(text);
    }
    return ferror(stdout);
}
