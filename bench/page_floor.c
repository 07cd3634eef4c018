/* The least a page over SQLite can take: two statements kept prepared in a resident program. `/one` is
 * one row by key, `/list` twenty; QUERY_STRING is `id=NUMBER`. The argument is the database. */
#include <hob.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const SQL[] = {"SELECT id, title, cents FROM part WHERE id = ?",
                                  "SELECT id, title, cents FROM part WHERE id >= ? ORDER BY id LIMIT 20"};
static const char *const ROW[] = {"<p>%lld %s %lld\n", "<tr><td>%lld<td>%s<td>%lld\n"};

int main(int count, char **arguments) {
    hob *server;
    hob_request *request;
    sqlite3 *database;
    sqlite3_stmt *kept[2];
    char page[8192];
    if (count < 2 || sqlite3_open(arguments[1], &database) != SQLITE_OK) return 1;
    for (int n = 0; n < 2; n++)
        if (sqlite3_prepare_v2(database, SQL[n], -1, &kept[n], NULL) != SQLITE_OK) return 1;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        const char *query = hob_indexed(request, HOB_QUERY_STRING, NULL);
        const char *path = hob_indexed(request, HOB_PATH_INFO, NULL);
        int list = path && strstr(path, "list") != NULL;
        size_t long_ = (size_t)sprintf(page, list ? "<h1>Parts</h1><table>\n" : "<h1>Part</h1>\n");
        sqlite3_bind_int64(kept[list], 1, query && strlen(query) > 3 ? atoll(query + 3) : 0);
        while (sqlite3_step(kept[list]) == SQLITE_ROW && long_ < sizeof page - 512)
            long_ += (size_t)snprintf(page + long_, 256, ROW[list], sqlite3_column_int64(kept[list], 0),
                                      sqlite3_column_text(kept[list], 1), sqlite3_column_int64(kept[list], 2));
        sqlite3_reset(kept[list]);
        hob_header(request, "Content-Type", "text/html; charset=utf-8");
        hob_write(request, page, long_);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
