/* One row of a table by its key, as CGI: the query string is the key. Without one, the table is made. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static int create(sqlite3 *database) {
    return sqlite3_exec(database,
        "CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT);"
        "INSERT INTO item SELECT value, printf('%.*c', " TEXT_BYTES ", 'x')"
        " FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 1000)"
        " SELECT value FROM n)",
        NULL, NULL, NULL);
}

int main(void) {
    sqlite3 *database;
    sqlite3_stmt *statement;
    const char *key = getenv("QUERY_STRING");
    int flags = key ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(DATABASE, &database, flags, NULL) != SQLITE_OK) return 1;
    if (!key) return create(database) != SQLITE_OK;
    if (sqlite3_prepare_v2(database, "SELECT text FROM item WHERE id = ?", -1, &statement, NULL)
        != SQLITE_OK) return 1;
    sqlite3_bind_int64(statement, 1, atol(key));
    if (sqlite3_step(statement) != SQLITE_ROW) return 1;
    printf("Content-Type: text/html\n\n<p>%s</p>\n\n\n\n\n", sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return 0;
}
