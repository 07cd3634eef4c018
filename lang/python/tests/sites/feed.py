"""A Starlette application: streaming both ways, a background task, lifespan, a lot at a time."""

import asyncio
import contextlib
import hashlib

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket


@contextlib.asynccontextmanager
async def lifespan(app):
    yield {"notes": [], "wake": asyncio.Event(), "met": [], "everybody": asyncio.Event()}


async def home(request: Request):
    words = {"path": request.url.path, "query": dict(request.query_params)}
    return JSONResponse({**words, "agent": request.headers.get("user-agent")})


async def digest(request: Request):
    found = hashlib.sha256()
    async for piece in request.stream():
        found.update(piece)
    return PlainTextResponse(found.hexdigest())


async def echo(request: Request):
    return StreamingResponse(request.stream(), media_type="application/octet-stream")


async def count(request: Request):
    async def lines():
        for n in range(1, 10001):
            yield f"{n}\n"

    return StreamingResponse(lines(), media_type="text/plain")


async def note(request: Request):
    """Answers at once; the note is written when somebody asks for it."""

    async def write():
        await request.state.wake.wait()
        request.state.notes.append("written after the answer")

    return PlainTextResponse("noted", background=BackgroundTask(write))


async def notes(request: Request):
    request.state.wake.set()
    while not request.state.notes:
        await asyncio.sleep(0)
    return PlainTextResponse("\n".join(request.state.notes))


async def meet(request: Request):
    """Comes back when as many are here as the query says."""
    state = request.state
    state.met.append(1)
    if len(state.met) == int(request.query_params["n"]):
        state.everybody.set()
    await state.everybody.wait()
    return PlainTextResponse("met")


async def form(request: Request):
    async with request.form() as fields:
        file = fields["file"]
        body = await file.read()
        return JSONResponse({"title": fields["title"], "name": file.filename, "size": len(body)})


async def loop(request: Request):
    return PlainTextResponse(type(asyncio.get_running_loop()).__module__)


async def broken(request: Request):
    raise ZeroDivisionError("as asked")


async def talk(socket: WebSocket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_json({"path": socket.url.path, "said": text})


application = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/", home),
        Route("/digest", digest, methods=["POST"]),
        Route("/echo", echo, methods=["POST"]),
        Route("/count", count),
        Route("/note", note),
        Route("/notes", notes),
        Route("/meet", meet),
        Route("/form", form, methods=["POST"]),
        Route("/loop", loop),
        Route("/broken", broken),
        WebSocketRoute("/talk", talk),
    ],
)
