/* The same work inside Apache: the query string says how many KiB of body. */
#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>
#include <stdlib.h>
#include <string.h>

static char block[65536];

static int answer(request_rec *request) {
    if (!request->handler || strcmp(request->handler, "hobcompare")) return DECLINED;
    long left = (request->args ? atol(request->args) : 0) * 1024;
    ap_set_content_type(request, "text/plain");
    for (; left > 0; left -= (long)sizeof block)
        ap_rwrite(block, left < (long)sizeof block ? (int)left : (int)sizeof block, request);
    return OK;
}

static void begin(apr_pool_t *pool) {
    (void)pool;
    memset(block, 'x', sizeof block);
    for (size_t i = 1023; i < sizeof block; i += 1024) block[i] = '\n';
    ap_hook_handler(answer, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA hobcompare_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, begin,
};
