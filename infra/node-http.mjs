/**
 * Stands for `node:http` in a bundled ES module. An import of the original reads every export, and one of them loads the
 * whole of undici: 15 ms of CPU before the first invocation. No code of ours or of the SDK uses that one.
 */
const http = process.getBuiltinModule("node:http");
export default http;
export const {
  Agent,
  ClientRequest,
  IncomingMessage,
  METHODS,
  OutgoingMessage,
  STATUS_CODES,
  Server,
  ServerResponse,
  createServer,
  get,
  globalAgent,
  request,
} = http;
