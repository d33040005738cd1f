/* Writes the first line and the chunks of an answer. A writer appends everything and then
 * checks the buffer once. */
#include "wire/http1.h"

/* The number of digits of a chunk's size. Leading zeros are allowed (RFC 9112 7.1), so
 * this fixed number of bytes is reserved for the size before the chunk is written. */
#define SIZE_DIGITS 8

static const struct {
    int32_t status;
    sgi_str reason;
} reasons[] = {
    {100, SGI_STR_INIT("Continue")},
    {200, SGI_STR_INIT("OK")},
    {202, SGI_STR_INIT("Accepted")},
    {204, SGI_STR_INIT("No Content")},
    {400, SGI_STR_INIT("Bad Request")},
    {401, SGI_STR_INIT("Unauthorized")},
    {403, SGI_STR_INIT("Forbidden")},
    {404, SGI_STR_INIT("Not Found")},
    {405, SGI_STR_INIT("Method Not Allowed")},
    {406, SGI_STR_INIT("Not Acceptable")},
    {408, SGI_STR_INIT("Request Timeout")},
    {409, SGI_STR_INIT("Conflict")},
    {410, SGI_STR_INIT("Gone")},
    {413, SGI_STR_INIT("Content Too Large")},
    {414, SGI_STR_INIT("URI Too Long")},
    {415, SGI_STR_INIT("Unsupported Media Type")},
    {417, SGI_STR_INIT("Expectation Failed")},
    {421, SGI_STR_INIT("Misdirected Request")},
    {429, SGI_STR_INIT("Too Many Requests")},
    {431, SGI_STR_INIT("Request Header Fields Too Large")},
    {500, SGI_STR_INIT("Internal Server Error")},
    {501, SGI_STR_INIT("Not Implemented")},
    {502, SGI_STR_INIT("Bad Gateway")},
    {503, SGI_STR_INIT("Service Unavailable")},
    {504, SGI_STR_INIT("Gateway Timeout")},
    {505, SGI_STR_INIT("HTTP Version Not Supported")},
};

sgi_str sgi_http1_reason(int32_t status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return SGI_STR("");
}

/* Appends the status line. The line has a blank after the status even without a reason
 * phrase (RFC 9112 4). */
void sgi_http1_add_status(sgi_buf *out, int32_t status)
{
    sgi_buf_add_lit(out, "HTTP/1.1 ");
    sgi_buf_add_int(out, status);
    sgi_buf_add_char(out, ' ');
    sgi_buf_add_str(out, sgi_http1_reason(status));
    sgi_buf_add_lit(out, "\r\n");
}

void sgi_http1_add_head_end(sgi_buf *out)
{
    sgi_buf_add_lit(out, "\r\n");
}

size_t sgi_http1_open_chunk(sgi_buf *out)
{
    sgi_buf_add_lit(out, "00000000\r\n");
    return out->len;
}

void sgi_http1_close_chunk(sgi_buf *out, size_t place)
{
    if (out->failed)
        return;
    size_t size = out->len - place;
    char *end = out->p + place - 2;
    if (!size) {
        sgi_buf_shorten(out, place - SIZE_DIGITS - 2);
        return;
    }
    for (int i = 1; i <= SIZE_DIGITS; i++, size >>= 4)
        end[-i] = "0123456789abcdef"[size & 15];
    sgi_buf_add_lit(out, "\r\n");
}

void sgi_http1_add_last_chunk(sgi_buf *out)
{
    sgi_buf_add_lit(out, "0\r\n\r\n");
}
