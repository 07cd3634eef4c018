"""What the cases of the Autobahn test suite speak through: today's Autobahn, with text for bytes as they have it."""

from collections import Counter, deque
from collections.abc import Callable

from autobahn.twisted.websocket import WebSocketClientFactory, WebSocketClientProtocol
from twisted.internet import reactor


def text_of(data: bytes) -> str:
    return data.decode("latin-1")


def bytes_of(text):
    return text.encode("latin-1") if isinstance(text, str) else text


class Client(WebSocketClientProtocol):
    """A connection of one case."""

    def __init__(self, case: type, patience: float):
        super().__init__()
        self.patience = patience
        self.connectionWasOpen = False
        self.createWirelog = True
        self.txFrameStats = Counter()
        self.Case, self.run_case = case, None
        # Compressed messages are hashed as they come, others are compared with literals.
        self.is_raw = hasattr(case, "TESTDATA")

    # What cases ask for.

    def enableWirelog(self, enable):
        self.createWirelog = enable

    def continueLater(self, delay, does, tag=None):
        self.later(delay, does)

    def killAfter(self, delay):
        self.later(delay * self.patience, self._fail_connection)

    def closeAfter(self, delay):
        self.later(delay * self.patience, self.sendClose)

    def later(self, delay, does):
        reactor.callLater(delay, lambda: does() if self.state != self.STATE_CLOSED else None)

    def sendFrame(self, opcode, payload=b"", **more):
        self.txFrameStats[opcode] += 1
        super().sendFrame(opcode, bytes_of(payload), **more)

    def sendMessage(self, payload, isBinary=False, **more):
        super().sendMessage(bytes_of(payload), isBinary, **more)

    def sendMessageFrameData(self, payload, sync=False):
        return super().sendMessageFrameData(bytes_of(payload), sync)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, bytes_of(reasonUtf8), isReply)

    # What cases are told.

    def connectionMade(self):
        # It may ask for compression, which is a part of the first request.
        self.run_case = self.Case(self)
        super().connectionMade()

    def onOpen(self):
        self.connectionWasOpen = True
        self.run_case.onOpen()

    def onMessage(self, payload, isBinary):
        self.run_case.onMessage(payload if self.is_raw else text_of(payload), isBinary)

    def onPing(self, payload):
        self.run_case.onPing(text_of(payload))

    def onPong(self, payload):
        self.run_case.onPong(text_of(payload))

    def onClose(self, wasClean, code, reason):
        self.run_case.onClose(wasClean, code, reason)

    def connectionLost(self, reason):
        super().connectionLost(reason)
        try:
            self.run_case.onConnectionLost(self.failedByMe)
        finally:
            self.factory.over(self.Case, self.run_case)


class Factory(WebSocketClientFactory):
    """Runs cases, so many at once, and notes how they ended."""

    def __init__(self, url: str, patience: float, waves: list, ended: Callable[[], None]):
        super().__init__(url)
        self.setProtocolOptions(failByDrop=False, openHandshakeTimeout=10 * patience)
        self.setProtocolOptions(closeHandshakeTimeout=10 * patience, serverConnectionDropTimeout=10 * patience)
        self.patience = patience
        self.waves, self.results, self.ended = deque(waves), {}, ended
        self.waiting: deque = deque()
        self.connecting: deque = deque()
        self.at_once = self.open = 0
        self.is_over = False

    def go_on(self):
        while True:
            while self.waiting and self.open < self.at_once:
                self.open += 1
                self.connecting.append(self.waiting.popleft())
                reactor.connectTCP(self.host, self.port, self)
            if self.open or self.waiting:
                return
            if not self.waves:
                # Two connections may end at once.
                if not self.is_over:
                    self.is_over = True
                    self.ended()
                return
            cases, self.at_once = self.waves.popleft()
            self.waiting.extend(cases)

    def buildProtocol(self, address):
        protocol = Client(self.connecting.popleft(), self.patience)
        protocol.factory = self
        return protocol

    def over(self, case, ran):
        self.results[case] = ran
        self.open -= 1
        reactor.callLater(0, self.go_on)

    def clientConnectionFailed(self, connector, reason):
        self.connecting.popleft()
        self.waiting.clear()
        self.waves.clear()
        self.open -= 1
        reactor.callLater(0, self.go_on)


def run(urls: list[str], patience: float, waves: list) -> list[dict]:
    """Runs waves of cases, each with how many at once, at one URL after the other."""

    def go_on():
        following = next(waiting, None)
        if following:
            following.go_on()
        else:
            reactor.stop()

    factories = [Factory(url, patience, waves, go_on) for url in urls]
    waiting = iter(factories)
    reactor.callWhenRunning(go_on)
    reactor.run()
    return [factory.results for factory in factories]
