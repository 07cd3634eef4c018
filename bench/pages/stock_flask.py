"""The pages of stock.page; STOCK in the environment is the database."""
import os
import sqlite3

from flask import Flask, request

application = Flask(__name__)
stock = sqlite3.connect(os.environ["STOCK"], check_same_thread=False)
ONE = application.jinja_env.from_string(
    "<h1>Part</h1>{% for row in rows %}<p>{{ row[0] }} {{ row[1] }} {{ row[2] }}{% endfor %}"
)
TABLE = application.jinja_env.from_string(
    "<h1>{{ title }}</h1><table>{% for row in rows %}<tr><td>{{ row[0] }}<td>{{ row[1] }}<td>{{ row[2] }}{% endfor %}"
    "</table>"
)


def rows(statement, *values):
    return stock.execute(statement, values)


def part(id):
    return ONE.render(rows=rows("SELECT id, title, cents FROM part WHERE id = ?", id))


@application.get("/one")
def one():
    return part(request.args["id"])


@application.get("/list")
def list():
    found = rows("SELECT id, title, cents FROM part WHERE id >= ? ORDER BY id LIMIT 20", request.args["id"])
    return TABLE.render(title="Parts", rows=found)


@application.get("/search")
def search():
    statement = "SELECT id, title, cents FROM part WHERE title LIKE '%' || ? || '%' ORDER BY id LIMIT 20"
    return TABLE.render(title="Parts", rows=rows(statement, request.args["q"]))


@application.post("/edit")
def edit():
    with stock:
        rows("UPDATE part SET cents = ? WHERE id = ?", request.form["cents"], request.form["id"])
    return part(request.form["id"])


@application.get("/report")
def report():
    first = int(request.args["id"])
    statement = (
        "SELECT id / 100 AS shelf, count(*), sum(cents) FROM part WHERE id BETWEEN ? AND ? GROUP BY shelf ORDER BY shelf"
    )
    return TABLE.render(title="Shelves", rows=rows(statement, first, first + 999))
