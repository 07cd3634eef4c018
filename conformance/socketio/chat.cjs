// A chat over Socket.IO, one process of several: whoever is connected to this one hears what is said to it.
//
//     node chat.cjs PACKAGE_JSON
//
// Socket.IO is the one of the package. The address is printed.
const { createRequire } = require("node:module");
const { createServer } = require("node:http");
const { Server } = createRequire(process.argv[2])("socket.io");

const server = createServer();
const io = new Server(server);
io.on("connection", (socket) => {
  socket.on("say", (text, answer) => {
    io.emit("said", text);
    answer(process.pid);
  });
});
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${server.address().port}`);
});
